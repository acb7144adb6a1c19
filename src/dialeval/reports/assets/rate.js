// Rating, keyboard first: one thing after the other, its questions, and what was answered.

const data = JSON.parse(document.getElementById("rate-data").textContent);
const main = document.getElementById("main");
const KEYS = [
  ["1 2 3 …", "answer the question that is marked; y and n for yes and no"],
  ["← →", "the answer before, the next answer"],
  ["↑ ↓", "the question before, the next question"],
  ["Enter", "save the answers and continue"],
  ["u", "undo: go back to the row before"],
  ["c", "write a comment; Escape leaves it"],
  ["?", "show or hide these keys"],
];

const help = make(
  "dialog",
  { id: "help", "aria-labelledby": "help-title" },
  make("h2", { id: "help-title" }, "Keys"),
  make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)])),
  make("button", { type: "button" }, "Close"),
);
help.querySelector("button").addEventListener("click", () => help.close());

const toggleHelp = () => {
  if (help.open) help.close();
  else help.showModal();
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
  const rows = Math.round(data.things.length * (1 + data.form.repeat));
  const words = data.things.reduce((sum, { context, responses }) =>
    sum + [...context, ...responses].join(" ").split(/\s+/).length, 0) * (rows / Math.max(1, data.things.length));
  const minutes = Math.max(1, Math.round(words / WORDS_A_MINUTE + (rows * data.form.qualities.length * SECONDS_A_QUESTION) / 60));
  const unit = data.form.compare ? "pair" : data.form.unit === "conversation" ? "conversation" : "repl";
  const plural = unit === "repl" ? (rows === 1 ? "reply" : "replies") : `${unit}${rows === 1 ? "" : "s"}`;
  return `${rows} ${plural} to rate, about ${minutes} minute${minutes === 1 ? "" : "s"}. You can stop at any time and go on later.`;
};

const askForName = () => {
  const input = make("input", { id: "rater", maxlength: 64, autocomplete: "off" });
  const start = make("button", { type: "button" }, "Start");
  const begin = () => {
    const rater = input.value.trim().normalize("NFC");
    if (!rater) {
      tell("Write your name or initials first.");
      input.focus();
      return;
    }
    tell("");
    rememberRater(data, rater);
    rate(rater);
  };
  start.addEventListener("click", begin);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation(); // it would answer the first row
    begin();
  });
  const label = make("label", { for: "rater" }, "Your name or initials");
  main.replaceChildren(told(), make("p", { id: "workload" }, workload()), notice, make("p", { class: "controls" }, label, input, start));
  input.focus();
};

const told = () => make("p", { class: "lead" }, isolated(data.form.instructions));

// A button that marks a turn by its number.
const markButton = (number, marked) => {
  if (!data.form.mark) return null;
  const button = make("button", { type: "button", class: "mark", "aria-pressed": String(marked.has(number)) },
    make("span", { "aria-hidden": "true" }, "⚑"), make("span", { class: "hidden" }, `Mark turn ${number}`));
  button.addEventListener("click", () => {
    if (!marked.delete(number)) marked.add(number);
    button.setAttribute("aria-pressed", String(marked.has(number)));
  });
  return button;
};

const byUser = (role, at, last) => (role ? /^(user|human|customer)$/i.test(role) : (last - at) % 2 === 0);

const textsOf = (thing, swapped, marked) => {
  const [first, second] = swapped ? [...thing.responses].reverse() : thing.responses;
  const said = (title, text, mark = null) =>
    make("section", { class: "reply", "aria-label": title }, make("h2", {}, title, mark), make("p", {}, isolated(text, "text")));
  const turns = thing.context.map((turn, at) => {
    const role = thing.roles?.[at];
    return make("li", { class: `bubble ${byUser(role, at, thing.context.length - 1) ? "by-right" : "by-left"}` },
      role ? make("span", { class: "aside" }, `${role}: `) : null, isolated(turn, "text"), markButton(at + 1, marked));
  });
  const references = (thing.references ?? []).map((text) => said("Reference", text));
  const last = data.form.unit === "conversation" ? "Last turn" : "Reply";
  return [
    make("h2", { id: "row", tabindex: -1 }, data.form.mark ? `Conversation. ${data.form.mark}.`.replace(/\.\.$/, ".") : "Conversation"),
    turns.length
      ? make("ol", { class: "context", tabindex: 0, "aria-label": "Conversation" }, ...turns)
      : make("p", { class: "note" }, "Nothing was said before."),
    ...references,
    second === undefined
      ? said(last, first, markButton(thing.context.length + 1, marked))
      : make("div", { class: "sides" }, said(`${last} A`, first), said(`${last} B`, second)),
  ];
};

// A question with its answers; `factor` is -1 where sides are swapped.
const questionOf = ({ name, question, choices }, at, factor, line) => {
  const given = line && Object.hasOwn(line.scores, name) ? line.scores[name] : null;
  const answers = choices.map(({ value, label, keys }, number) => {
    const own = factor * value;
    const id = `answer-${at}-${number}`;
    const input = make("input", { type: "radio", name: `question-${at}`, id, value: own, checked: own === given });
    input.dataset.keys = keys.join(" ");
    const key = make("kbd", { "aria-hidden": "true" }, keys[0]);
    // Where a number says it all, the key is shown as the answer; read aloud it is one, too.
    const words = label ? isolated(label) : make("span", { class: "hidden" }, String(value));
    const aloud = label && keys[0] === String(value) ? make("span", { class: "hidden" }, `${value}: `) : null;
    return make("label", { class: "choice", for: id }, input, key, aloud, words);
  });
  return make("fieldset", {}, make("legend", {}, isolated(question)), make("div", { class: "answers" }, ...answers));
};

const timeLeft = (store, remaining) => {
  const times = [...store.lines.values()].map((line) => line.seconds).filter(Number.isFinite);
  if (times.length < 3 || !remaining) return "";
  times.sort((one, other) => one - other);
  const minutes = Math.round((times[Math.floor(times.length / 2)] * remaining) / 60);
  return minutes < 1 ? ", less than a minute left" : `, about ${minutes} minute${minutes > 1 ? "s" : ""} left`;
};

const rate = (rater) => {
  const sequence = sequenceOf(data, rater);
  const store = data.server ? onServer(data, rater, () => showSaving()) : inBrowser(data, rater, tell);
  const lineOf = ({ thing, again }) => store.lines.get(keyOf({ id: thing.id, again }));
  const open = () => sequence.findIndex((each) => !lineOf(each));
  const bar = make("progress", { max: sequence.length, "aria-label": "Rated" });
  const status = make("p", { id: "status", role: "status" });
  const keys = make("button", { type: "button", id: "keys" }, "Keys ", make("kbd", { "aria-hidden": "true" }, "?"));
  keys.addEventListener("click", toggleHelp);
  const who = make("p", { class: "who note" }, make("span", {}, "Rating as ", isolated(rater), "."), keys);
  const view = make("div", { id: "view" });
  const instructions = make("details", { id: "instructions" }, make("summary", {}, "Instructions"), told(),
    make("p", { class: "note" }, workload()));
  const saved = make("p", { id: "saved", class: "note" });
  const problem = make("p", { role: "alert" });
  const unsaved = make(
    "div",
    { id: "unsaved", class: "notice", hidden: true },
    problem,
    make(
      "p",
      { class: "controls" },
      buttonOf("Try again now", () => store.retry()),
      buttonOf("Download your ratings", () => download(store, rater)),
    ),
  );
  let at = open();
  let began = 0;
  let active = 0;
  let fieldsets = [];
  let comment = null;
  let marked = new Set();

  const focusQuestion = (number) => {
    active = Math.max(0, Math.min(number, fieldsets.length - 1));
    fieldsets.forEach((each, place) => each.classList.toggle("active", place === active));
    const radios = [...fieldsets[active].querySelectorAll("input")];
    (radios.find((radio) => radio.checked) ?? radios[0]).focus();
  };

  const progress = () => {
    const rated = sequence.filter(lineOf).length;
    bar.value = rated;
    const place = at < 0 ? "" : `Row ${at + 1} of ${sequence.length}. `;
    status.textContent = `${place}${rated} of ${sequence.length} rated${timeLeft(store, sequence.length - rated)}.`;
  };

  const count = (number) => `${number} rating${number === 1 ? "" : "s"}`;

  // The last words: nobody is thanked before the server has acknowledged everything.
  const ending = () => {
    if (!data.server) return "All are rated. Thank you. Download the file and send it back.";
    const left = store.unsent();
    if (left) return `All are rated, but ${count(left)} not saved yet. Leave this page open until everything is saved.`;
    if (store.refused.size) return "All are rated, but the server does not have all of your ratings: see above.";
    return "All are rated, and your ratings are on the server. Thank you.";
  };

  const showSaving = () => {
    const left = store.unsent();
    saved.textContent = left ? `${count(left)} not saved yet.` : store.refused.size ? "" : "Everything is saved.";
    const rows = sequence.flatMap(({ thing, again }, place) =>
      store.refused.has(keyOf({ id: thing.id, again })) ? [place + 1] : []);
    const kept = store.kept ? "They are kept in this browser." : "This browser stores nothing: leave this page open.";
    const words = [];
    if (left && (store.problem || !store.kept)) {
      words.push(`${count(left)} not saved yet${store.problem && `: ${store.problem}; trying again`}. ${kept}`);
    }
    if (rows.length) {
      words.push(
        `The server refused your rating of row ${rows.join(", ")}. Rate it again, or download your ratings and send ` +
          "the file to whoever gave you the link.",
      );
    }
    if (problem.textContent !== words.join(" ")) problem.textContent = words.join(" ");
    unsaved.hidden = !words.length;
    const done = document.getElementById("done");
    if (done) done.textContent = ending();
  };

  const show = () => {
    progress();
    if (at < 0) {
      fieldsets = [];
      view.replaceChildren(make("p", { id: "done", tabindex: -1, role: "status" }, ending()));
      const files = document.getElementById("files");
      if (!data.server) files.open = true;
      (data.server ? view.firstChild : files.querySelector("button")).focus();
      return;
    }
    const { thing, swapped } = sequence[at];
    const line = lineOf(sequence[at]);
    fieldsets = data.form.qualities.map((quality, number) => questionOf(quality, number, swapped ? -1 : 1, line));
    fieldsets.forEach((each, number) => each.addEventListener("focusin", () => {
      active = number;
      fieldsets.forEach((other) => other.classList.toggle("active", other === each));
    }));
    comment = data.form.comment ? make("input", { id: "comment", maxlength: 2000, autocomplete: "off" }) : null;
    if (comment) comment.value = line?.comment ?? "";
    const next = make("button", { type: "button", id: "next" }, "Next");
    const undo = make("button", { type: "button", id: "undo", disabled: at === 0 }, "Back");
    next.addEventListener("click", goOn);
    undo.addEventListener("click", goBack);
    marked = new Set(line?.marked ?? []);
    view.replaceChildren(
      make("div", { class: "shown" }, ...textsOf(thing, swapped, marked)),
      make("div", { class: "ask" },
        ...fieldsets,
        ...(comment ? [make("p", { class: "comment" }, make("label", { for: "comment" }, "Comment (optional)"), comment)] : []),
        make("p", { class: "controls" }, undo, next)),
    );
    const context = view.querySelector(".context");
    if (context) context.scrollTop = context.scrollHeight; // the last turns are what the reply answers
    instructions.open = !sequence.some(lineOf);
    scrollTo(0, 0);
    began = performance.now();
    focusQuestion(0);
  };

  const goBack = () => {
    if (at === 0) return;
    at = at < 0 ? sequence.length - 1 : at - 1;
    tell("");
    show();
  };

  const goOn = () => {
    const given = fieldsets.map((each) => each.querySelector("input:checked"));
    const missing = given.indexOf(null);
    if (missing >= 0) {
      tell(`Answer first: ${visible(data.form.qualities[missing].question)}`);
      focusQuestion(missing);
      return;
    }
    tell("");
    const { thing, again } = sequence[at];
    const before = lineOf(sequence[at])?.seconds ?? 0; // of a row that one came back to
    const seconds = Math.round(10 * before + (performance.now() - began) / 100) / 10;
    const scores = Object.fromEntries(data.form.qualities.map(({ name }, place) => [name, Number(given[place].value)]));
    const line = { id: thing.id, rater, scores, seconds };
    if (comment?.value.trim()) line.comment = comment.value.trim();
    if (marked.size) line.marked = [...marked].sort((one, other) => one - other);
    if (again) line.again = true;
    store.save(line);
    at = at + 1 < sequence.length ? at + 1 : open();
    show();
  };

  const choose = (radio) => {
    radio.checked = true;
    const unanswered = fieldsets.findIndex((each) => !each.querySelector("input:checked"));
    focusQuestion(unanswered > active ? unanswered : active);
  };

  const step = (by) => {
    const radios = [...fieldsets[active].querySelectorAll("input")];
    const now = radios.findIndex((radio) => radio.checked);
    const then = now < 0 ? (by < 0 ? 0 : radios.length - 1) : Math.max(0, Math.min(now + by, radios.length - 1));
    radios[then].checked = true;
    radios[then].focus();
  };

  const ACTS = {
    "?": toggleHelp,
    u: goBack,
    c: () => comment?.focus(),
    Enter: goOn,
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => focusQuestion(active - 1),
    ArrowDown: () => focusQuestion(active + 1),
  };

  const pressed = (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (help.open) {
      if (key === "?") toggleHelp();
      return;
    }
    if (target === comment) {
      if (key === "Escape") focusQuestion(active);
      if (key === "Enter") goOn();
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
    rememberRater(data, null);
    askForName();
  };
  const changed = () => {
    at = open();
    show();
  };
  document.addEventListener("keydown", pressed);
  const files = filesPart(data, rater, sequence, store, { changed, leave: data.server ? null : leave });
  main.replaceChildren(who, bar, status, instructions, ...(data.server ? [saved, unsaved] : []), notice, view, files);
  show();
  if (data.server) {
    showSaving();
    store.start();
  }
};

document.body.append(help);
const known = data.rater ?? lastRater(data);
if (known) rate(known);
else askForName();
