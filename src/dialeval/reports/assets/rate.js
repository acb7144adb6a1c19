// Rating: one row after the other, its questions, and what was answered; by keys, by touch, with a screen reader.

const data = JSON.parse(document.getElementById("rate-data").textContent);
const { form } = data;
const main = document.getElementById("main");
const ARROWS = { ArrowLeft: "←", ArrowDown: "↓", ArrowRight: "→" };
const KEYS = [
  form.compare ? ["← ↓ →", "A is better, no difference, B is better"] : ["1 2 3 …", "answer the question; y and n for yes and no"],
  ...(form.compare ? [] : [["← →", "the answer before, the next answer"], ["↑ ↓", "the question before, the next question"]]),
  ["Enter", "save the answers and go on"],
  ["u", "undo: go back to the row before"],
  ["c", "write a comment; Escape leaves it"],
  ["?", "show or hide these keys"],
];

const dialogOf = (id, title, ...children) => {
  const dialog = make("dialog", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...children,
    make("p", { class: "act" }, buttonOf("Close", () => dialog.close())));
  document.body.append(dialog);
  return dialog;
};

const notice = make("p", { class: "notice", role: "alert", hidden: true });
const tell = (text) => {
  notice.textContent = text;
  notice.hidden = !text;
};

const WORDS_A_MINUTE = 200;
const SECONDS_A_QUESTION = 6;

// How many rows there are and about how long they take, by their words and questions.
const workload = () => {
  const rows = Math.round(data.things.length * (1 + form.repeat));
  const words = data.things.reduce((sum, { context, responses }) =>
    sum + [...context, ...responses].join(" ").split(/\s+/).length, 0) * (rows / Math.max(1, data.things.length));
  const minutes = Math.max(1, Math.round(words / WORDS_A_MINUTE + (rows * form.qualities.length * SECONDS_A_QUESTION) / 60));
  const [one, many] = form.compare ? ["pair", "pairs"] : form.unit === "reply" ? ["reply", "replies"] : ["conversation", "conversations"];
  return `${plural(rows, one, many)} to rate, about ${plural(minutes, "minute")}. You can stop at any time and go on later.`;
};

const told = () => [
  make("p", { class: "lead" }, isolated(form.instructions)),
  form.mark ? make("p", {}, isolated(form.mark)) : null,
  make("p", { class: "soft", id: "workload" }, workload()),
];

// The first screen: what is to be done, and who rates where that is not known from the link.
const askForName = (rater = null) => {
  const input = make("input", { id: "rater", maxlength: 64, autocomplete: "off" });
  const begin = () => {
    const name = rater ?? input.value.trim().normalize("NFC");
    if (!name) {
      tell("Write your name or initials first.");
      input.focus();
      return;
    }
    tell("");
    rememberRater(data, name);
    rate(name);
  };
  const start = buttonOf("Start", begin, "pri");
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation(); // it would answer the first row
    begin();
  });
  const who = rater === null ? [make("label", { for: "rater" }, "Your name or initials"), input] : [];
  main.replaceChildren(make("div", { class: "start" }, make("h1", {}, isolated(form.title)), ...told(), notice,
    make("p", { class: "act" }, ...who, start)));
  (rater === null ? input : start).focus();
};

// A button that marks a turn by its number.
const markButton = (number, marked, changed) => {
  if (!form.mark) return null;
  const label = () => (marked.has(number) ? "⚑ Marked" : "⚐ Mark");
  const button = buttonOf("", () => {
    if (!marked.delete(number)) marked.add(number);
    show();
    changed();
  }, "mark");
  const show = () => {
    button.replaceChildren(label(), make("span", { class: "hidden" }, ` turn ${number}`));
    button.setAttribute("aria-pressed", String(marked.has(number)));
  };
  show();
  return button;
};

const USER = /^(user|human|customer)$/i;

// The conversation from its first turn on, and what is to be rated.
const textsOf = (thing, swapped, marked, changed) => {
  const [first, second] = swapped ? [...thing.responses].reverse() : thing.responses;
  const last = thing.context.length - 1;
  const turns = thing.context.map((turn, at) => {
    const role = thing.roles?.[at];
    const byUser = role ? USER.test(role) : (last - at) % 2 === 0;
    return make("li", { class: byUser ? "line usr" : "line sys" }, role ? make("small", { class: "aside" }, isolated(role)) : null,
      make("p", {}, isolated(turn, "text")), role && byUser ? null : markButton(at + 1, marked, changed));
  });
  const said = (title, text, more = null) =>
    make("section", { class: "target", "aria-label": title }, make("small", {}, title), make("div", { class: "reply" }, make("p", {}, isolated(text, "text"))), more);
  const card = (side, text) =>
    make("section", { class: "reply card", "aria-label": `Reply ${side}`, "data-side": side === "A" ? 1 : -1 },
      make("b", {}, `Reply ${side}`), make("p", {}, isolated(text, "text")));
  const whole = form.unit === "conversation";
  return [
    make("h2", { id: "row", class: "hidden", tabindex: -1 }, "Conversation"),
    turns.length ? make("ol", { class: "context", "aria-label": "Conversation" }, ...turns) : make("p", { class: "soft" }, "Nothing was said before."),
    ...(thing.references ?? []).map((text) => said("Reference", text)),
    second === undefined
      ? said(whole ? "Last turn" : "The reply to rate", first, markButton(last + 2, marked, changed))
      : make("div", { class: "pair" }, card("A", first), card("B", second)),
  ];
};

let rubricOpen = matchMedia("(min-width: 54rem)").matches;

// A question with its answers; `factor` is -1 where sides are swapped. Nothing is chosen before the rater chooses.
const questionOf = ({ name, question, choices, rubric }, at, factor, line) => {
  const chosen = choices.findIndex(({ value, both_bad: bad = false }) => line && Object.hasOwn(line.scores, name) &&
    line.scores[name] === (value === null ? null : value * factor || 0) && bad === (line.both_bad ?? []).includes(name));
  const optionOf = ({ value, label, keys, minor = false }, number) => {
    const id = `answer-${at}-${number}`;
    const input = make("input", { type: "radio", name: `question-${at}`, id, value: number, checked: number === chosen });
    input.dataset.keys = keys.join(" ");
    // Where a number says it all, it is shown large; elsewhere the key stands small in the corner.
    const numbered = !minor && keys[0] === String(value % 10);
    const words = label ? isolated(label) : make("span", { class: "hidden" }, String(value));
    const key = numbered ? make("b", {}, String(value), label ? make("span", { class: "hidden" }, ": ") : null)
      : make("kbd", { "aria-hidden": "true" }, ARROWS[keys[0]] ?? keys[0]);
    return make("label", { class: minor ? "choice minor" : "choice", for: id }, input, key, words);
  };
  const made = choices.map(optionOf);
  const major = made.filter((each) => !each.classList.contains("minor"));
  const options = make("div", { class: `opts of-${Math.min(major.length, 10)}` }, ...major);
  const minor = made.filter((each) => each.classList.contains("minor"));
  const more = make("details", { class: "rubric", open: rubricOpen }, make("summary", {}, "What the answers stand for"),
    make("dl", {}, ...rubric.flatMap((text, place) => [
      make("dt", {}, choices[place].keys[0] === String(choices[place].value % 10) ? String(choices[place].value) : isolated(choices[place].label)),
      make("dd", {}, isolated(text))])));
  more.addEventListener("toggle", () => {
    rubricOpen = more.open;
  });
  return make("fieldset", { tabindex: -1 }, make("legend", {}, isolated(question)), options,
    minor.length ? make("div", { class: "opts minors" }, ...minor) : null, rubric.length ? more : null);
};

const timeLeft = (store, remaining) => {
  const times = [...store.lines.values()].map((line) => line.seconds).filter(Number.isFinite);
  if (times.length < 3 || !remaining) return "";
  times.sort((one, other) => one - other);
  const minutes = Math.round((times[Math.floor(times.length / 2)] * remaining) / 60);
  return minutes < 1 ? "less than a minute left" : `about ${plural(minutes, "minute")} left`;
};

const rate = (rater) => {
  const sequence = sequenceOf(data, rater);
  const store = data.server ? onServer(data, rater, () => showSaving()) : inBrowser(data, rater, tell);
  const lineOf = ({ thing, again }) => store.lines.get(keyOf({ id: thing.id, again }));
  const open = () => sequence.findIndex((each) => !lineOf(each));
  const split = form.unit === "conversation" || form.qualities.length > 2;

  const bar = make("progress", { max: sequence.length, "aria-label": "Rated" });
  const status = make("b", { id: "status", role: "status" });
  const left = make("span", { class: "opt" });
  const saved = make("span", { id: "saved", role: "status" }, "Kept in this browser");
  const view = make("div", { id: "view" });
  const problem = make("p", { role: "alert" });
  const unsaved = make("div", { id: "unsaved", class: "notice", hidden: true }, problem, make("p", { class: "act" },
    buttonOf("Try again now", () => store.retry()), buttonOf("Download your ratings", () => download(store, rater))));
  let at = open();
  let began = 0;
  let active = 0;
  let fieldsets = [];
  let comment = null;
  let next = null;
  let hint = null;
  let marked = new Set();

  const chosenOf = (fieldset) => fieldset.querySelector("input:checked");
  const focusQuestion = (number) => {
    active = Math.max(0, Math.min(number, fieldsets.length - 1));
    fieldsets.forEach((each, place) => each.classList.toggle("active", fieldsets.length > 1 && place === active));
    fieldsets[active].focus({ preventScroll: true }); // the question, never an answer: no answer is suggested
  };

  const progress = () => {
    const rated = sequence.filter(lineOf).length;
    bar.value = rated;
    status.replaceChildren(at < 0 ? `${rated} of ${sequence.length} rated` : `${at + 1} of ${sequence.length}`,
      make("span", { class: "hidden" }, at < 0 ? "" : `, ${rated} rated`));
    left.textContent = timeLeft(store, sequence.length - rated);
  };

  const count = (number) => plural(number, "rating");

  // The last words: nobody is thanked before the server has acknowledged everything.
  const ending = () => {
    if (!data.server) return "All are rated. Thank you. Download the file and send it back.";
    const waiting = store.unsent();
    if (waiting) return `All are rated, but ${count(waiting)} not saved yet. Leave this page open until everything is saved.`;
    if (store.refused.size) return "All are rated, but the server does not have all of your ratings: see above.";
    return "All are rated, and your ratings are on the server. Thank you.";
  };

  const showSaving = () => {
    const waiting = store.unsent();
    saved.textContent = waiting ? `${count(waiting)} not saved yet` : store.refused.size ? "Not all saved" : "Saved";
    const rows = sequence.flatMap(({ thing, again }, place) =>
      store.refused.has(keyOf({ id: thing.id, again })) ? [place + 1] : []);
    const kept = store.kept ? "They are kept in this browser." : "This browser stores nothing: leave this page open.";
    const words = [];
    if (waiting && (store.problem || !store.kept)) {
      words.push(`${count(waiting)} not saved yet${store.problem && `: ${store.problem}; trying again`}. ${kept}`);
    }
    if (rows.length) {
      words.push(`The server refused your rating of row ${rows.join(", ")}. Rate it again, or download your ratings and send ` +
        "the file to whoever gave you the link.");
    }
    if (problem.textContent !== words.join(" ")) problem.textContent = words.join(" ");
    unsaved.hidden = !words.length;
    const done = document.getElementById("done");
    if (done) done.textContent = ending();
  };

  const showAnswers = () => {
    const given = fieldsets.filter(chosenOf).length;
    next.disabled = given < fieldsets.length;
    for (const each of view.querySelectorAll(".card")) {
      const chosen = fieldsets.length === 1 && chosenOf(fieldsets[0]);
      each.classList.toggle("on", Boolean(chosen) && form.qualities[0].choices[chosen.value].value === Number(each.dataset.side));
    }
    const dock = view.querySelector(".dock span");
    if (dock) dock.textContent = `${form.mark ? `${marked.size} marked, ` : ""}${given} of ${plural(fieldsets.length, "question")} answered`;
  };

  const show = () => {
    progress();
    if (at < 0) {
      fieldsets = [];
      const back = buttonOf("Back", goBack);
      const take = data.server ? [] : [buttonOf("Download your ratings", () => download(store, rater), "pri")];
      view.className = "";
      view.replaceChildren(make("p", { id: "done", class: "lead", tabindex: -1, role: "status" }, ending()),
        make("p", { class: "act" }, back, ...take));
      (take[0] ?? view.firstChild).focus();
      return;
    }
    const { thing, swapped } = sequence[at];
    const line = lineOf(sequence[at]);
    fieldsets = form.qualities.map((quality, number) => questionOf(quality, number, swapped ? -1 : 1, line));
    fieldsets.forEach((each, number) => {
      each.addEventListener("focusin", () => {
        active = number;
        fieldsets.forEach((other) => other.classList.toggle("active", fieldsets.length > 1 && other === each));
      });
      each.addEventListener("change", () => {
        showAnswers();
        goOnByItself();
      });
    });
    marked = new Set(line?.marked ?? []);
    comment = form.comment ? make("textarea", { id: "comment", rows: 2, maxlength: 2000, "aria-label": "Comment", hidden: !line?.comment }) : null;
    const write = form.comment ? buttonOf("Add a comment", () => openComment(), "ico") : null;
    if (comment) {
      comment.value = line?.comment ?? "";
      write.hidden = !comment.hidden;
    }
    next = buttonOf("Next", goOn, "pri");
    next.id = "next";
    const back = buttonOf("Back", goBack);
    back.id = "undo";
    back.disabled = at === 0;
    hint = make("span", { class: "hint", role: "status" },
      `Keys ${form.compare ? "← ↓ →" : [...new Set(form.qualities.flatMap(({ choices }) => [choices[0].keys[0], choices.filter(({ minor }) => !minor).at(-1).keys[0]]))].slice(0, 2).join(" to ")}${form.advance ? "" : ", then Enter"}`);
    const ask = make("div", { class: split ? "ask" : "ask foot", id: "questions" }, ...fieldsets, write, comment, make("p", { class: "act" }, back, hint, next));
    view.className = split ? "split" : "";
    view.replaceChildren(make("div", { class: "shown" }, ...textsOf(thing, swapped, marked, showAnswers)), ask,
      ...(split ? [make("div", { class: "dock" }, make("span", {}), buttonOf("Go to the questions", () => ask.scrollIntoView()))] : []));
    for (const each of view.querySelectorAll(".card")) {
      each.addEventListener("click", () => {
        if (!getSelection().isCollapsed) return; // somebody selects words
        const number = form.qualities[active].choices.findIndex(({ value }) => value === Number(each.dataset.side));
        choose(fieldsets[active].querySelectorAll("input")[number]);
      });
    }
    showAnswers();
    scrollTo(0, 0);
    began = performance.now();
    focusQuestion(0);
  };

  const openComment = () => {
    if (!comment) return;
    comment.hidden = false;
    view.querySelector(".ico").hidden = true;
    comment.focus();
  };

  const goBack = () => {
    if (at === 0) return;
    at = at < 0 ? sequence.length - 1 : at - 1;
    show();
  };

  const goOn = () => {
    const given = fieldsets.map(chosenOf);
    const missing = given.indexOf(null);
    if (missing >= 0) {
      hint.textContent = `Not answered yet: ${visible(form.qualities[missing].question)}`;
      focusQuestion(missing);
      return;
    }
    const { thing, again, swapped } = sequence[at];
    const before = lineOf(sequence[at])?.seconds ?? 0; // of a row that one came back to
    const seconds = Math.round(10 * before + (performance.now() - began) / 100) / 10;
    const answers = form.qualities.map(({ name, choices }, place) => [name, choices[given[place].value]]);
    const factor = swapped ? -1 : 1;
    const scores = Object.fromEntries(answers.map(([name, { value }]) => [name, value === null ? null : value * factor || 0]));
    const line = { id: thing.id, rater, scores, seconds };
    const bad = answers.filter(([, { both_bad: both }]) => both).map(([name]) => name);
    if (bad.length) line.both_bad = bad;
    if (comment?.value.trim()) line.comment = comment.value.trim();
    if (marked.size) line.marked = [...marked].sort((one, other) => one - other);
    if (again) line.again = true;
    store.save(line);
    at = at + 1 < sequence.length ? at + 1 : open();
    show();
  };

  const goOnByItself = () => {
    const here = at;
    if (form.advance && !next.disabled && (comment?.hidden ?? true)) setTimeout(() => at === here && goOn(), 200);
  };

  const choose = (radio) => {
    radio.checked = true;
    showAnswers();
    const unanswered = fieldsets.findIndex((each) => !chosenOf(each));
    focusQuestion(unanswered > active ? unanswered : active);
    goOnByItself();
  };

  const step = (by) => {
    const radios = [...fieldsets[active].querySelectorAll("input")];
    const now = radios.findIndex((radio) => radio.checked);
    radios[now < 0 ? (by < 0 ? 0 : radios.length - 1) : Math.max(0, Math.min(now + by, radios.length - 1))].checked = true;
    showAnswers();
  };

  const ACTS = {
    "?": () => (instructions.open ? instructions.close() : instructions.showModal()),
    u: goBack,
    c: openComment,
    Enter: goOn,
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => focusQuestion(active - 1),
    ArrowDown: () => focusQuestion(active + 1),
  };

  const pressed = (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) {
      if (key === "?" && instructions.open) instructions.close();
      return;
    }
    if (target === comment) {
      if (key === "Escape") focusQuestion(active);
      else if (key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        goOn();
      }
      return;
    }
    if (target.matches("textarea, input[type=file]")) return;
    if (!fieldsets.length && !["?", "u"].includes(key)) return;
    if (target.matches("button, summary, a") && ["Enter", "ArrowUp", "ArrowDown"].includes(key)) return;
    const radio = fieldsets[active]?.querySelector(`input[data-keys~="${CSS.escape(key)}"]`);
    if (!radio && !Object.hasOwn(ACTS, key)) return;
    event.preventDefault();
    if (radio) choose(radio);
    else ACTS[key]();
  };

  const leave = () => {
    document.removeEventListener("keydown", pressed);
    for (const each of document.querySelectorAll("dialog")) each.remove();
    rememberRater(data, null);
    askForName();
  };
  const changed = () => {
    at = open();
    show();
  };
  document.addEventListener("keydown", pressed);
  const instructions = dialogOf("instructions", "Instructions", ...told(), make("h3", {}, "Keys"),
    make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)])));
  const where = data.server ? "Your ratings are on the server." : "Your ratings are kept in this browser until you download them.";
  const pause = dialogOf("pause", "Pause", make("p", {}, `${where} Close this page, and open it again to go on. You rate as `, isolated(rater), "."),
    filesPart(data, rater, sequence, store, { changed, leave: data.server ? null : leave }));
  main.replaceChildren(
    bar,
    make("header", { class: "rtop" }, status, left, make("span", { class: "r" }, saved,
      buttonOf("Instructions", () => instructions.showModal(), "ico"), buttonOf("Pause", () => pause.showModal(), "ico"))),
    make("div", { class: split ? "rmain wide" : "rmain" }, make("h1", { class: "hidden" }, isolated(form.title)), unsaved, notice, view),
  );
  show();
  if (data.server) {
    showSaving();
    store.start();
  }
};

const known = data.rater ?? lastRater(data);
if (data.rater && !data.lines.length) askForName(data.rater);
else if (known) rate(known);
else askForName();
