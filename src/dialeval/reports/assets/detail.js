// One row in full: its dialogue as a transcript, what every system said side by side, and all scores of the row.

const SHOWN = 1500; // characters of a text that are shown until the rest is asked for

// A text with the searched words marked; a very long one is cut, and a button shows the rest.
const fullText = (text, words, shared = null) => {
  const holder = make("div", { class: "text" });
  const fill = (part) => holder.replaceChildren(marked(part, words, shared));
  if (text.length <= SHOWN) {
    fill(text);
    return holder;
  }
  fill(text.slice(0, SHOWN) + "…");
  const more = make(
    "button", { type: "button", class: "more" },
    `Show all, ${(text.length - SHOWN).toLocaleString("en")} more characters`,
  );
  more.addEventListener("click", () => {
    fill(text);
    holder.setAttribute("tabindex", "-1");
    holder.focus();
  });
  holder.append(more);
  return holder;
};

const WORD = /([\p{L}\p{N}]+)/u;
const WORDS = /[\p{L}\p{N}]+/gu;

// A part of a text with the words that the references have underlined.
const underlined = (text, shared) =>
  shared === null ? [text] : text.split(WORD).map((part, at) =>
    at % 2 && shared.has(part.toLowerCase()) ? make("span", { class: "shared" }, part) : part);

const marked = (text, words, shared) => {
  const shown = visible(text);
  const holder = make("bdi", { dir: "auto" });
  const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  // Split by a group: every second part is a match.
  const parts = words.length ? shown.split(new RegExp(`(${wanted})`, "iu")) : [shown];
  parts.forEach((part, at) => holder.append(...(at % 2 ? [make("mark", {}, part)] : underlined(part, shared))));
  return holder;
};

const listOf = (texts, words, kind, shared = null, roles = []) =>
  make(kind, {}, ...texts.map((text, at) => make("li", {},
    roles[at] && roles[at] !== text ? make("span", { class: "aside" }, `${roles[at]}: `) : null,
    fullText(text, words, shared))));

const block = (title, content) => make("section", {}, make("h4", {}, title), content);

// Where answers landed: each group of references, and below it the answers of each system that are most similar to it.
const landings = (rows, row, words, shared) => {
  const { group, texts } = rows;
  const answers = group.landed.map((system) => system[row]);
  const side = (name, own) => make("div", { class: "side" }, isolated(name, "name"),
    make("ul", {}, ...own.map(([text, , score]) => make("li", {}, fullText(texts[text], words, shared), " ",
      score === null ? null : make("span", { class: "aside" }, figure(score))))));
  const landing = (title, references, at) => {
    const own = answers.map((system) => system.filter((answer) => answer[1] === at));
    const sides = group.systems.map((name, system) => (own[system].length ? side(name, own[system]) : null));
    return make("section", {}, make("h4", {}, title), listOf(references, words, "ul"),
      own.some((each) => each.length) ? make("div", { class: "sides" }, ...sides) : make("p", { class: "note" }, "Nobody answered this."));
  };
  const found = group.groups[row].map(([name, references], at) =>
    landing(isolated(`Group ${texts[name]}`), references.map((text) => texts[text]), at));
  const lost = answers.some((system) => system.some((answer) => answer[1] === null));
  return lost ? [...found, landing("In no group", [], null)] : found;
};

const TOOLS = new Set(["tool", "function", "tool_call", "tool_result"]);
const USERS = new Set(["user", "human", "customer"]);
const MOST_TURNS = 40; // rows of a dialogue around the chosen one
const MANY_SYSTEMS = 6; // from so many on each system is a row of the table of scores

// A turn of the conversation: users on the right, tools folded. Where nobody says who speaks, sides alternate.
const bubble = (text, role, at, last, words) => {
  const known = role && role !== text;
  const user = known ? USERS.has(role.toLowerCase()) : (last - at) % 2 === 0;
  const who = known ? make("span", { class: "speaker" }, visible(role)) : null;
  if (known && TOOLS.has(role.toLowerCase())) {
    return make("details", { class: "bubble tool" }, make("summary", {}, who), fullText(text, words));
  }
  return make("div", { class: `bubble ${user ? "by-right" : "by-left"}` }, who, fullText(text, words));
};

const bubbles = (turns, roles, words, from = 0) =>
  turns.slice(from).map((text, at) => bubble(text, roles[from + at], from + at, turns.length - 1, words));

const chip = (key, value, worst) => make("span", { class: worst ? "chip weak" : "chip" },
  isolated(key.name, "name"), ` ${figure(value)}`, worst ? make("span", { class: "hidden" }, " (among the lowest)") : null);

// What each system said in a row, with the chosen score next to it.
const replies = (rows, row, state, words, shared) => {
  const { group } = rows;
  const key = group.keys[state.key];
  const sides = group.systems.map((name, system) => {
    const said = rows.said(system, row);
    const content = said.length > 1 ? listOf(said, words, "ul", shared) : fullText(said[0] ?? "–", words, shared);
    const value = rows.scores[state.key]?.[system]?.[row];
    const weak = key && key.level === "turn" && rows.failures(state.key, system)[row] === 1;
    return make("div", { class: `side ${group.colors[system]}` }, make("span", { class: "swatch" }), isolated(name, "name"),
      key && key.level === "turn" ? chip(key, value, weak) : null, make("div", { class: "said" }, content));
  });
  return make("div", { class: "sides" }, ...sides);
};

const sharedWords = (references) =>
  references.length ? new Set(references.flatMap((text) => text.toLowerCase().match(WORDS) ?? [])) : null;

// One row of a dialogue: what is new in its context, the replies, the references.
const turnOf = (rows, row, before, state, words) => {
  const context = rows.context(row);
  const from = before === null ? 0 : Math.min(rows.context(before).length + 1, Math.max(0, context.length - 1));
  const references = rows.references(row);
  const failed = rows.failures(state.key, state.system)[row] === 1;
  const label = rows.turn(row) === null ? null : make("h4", {}, `Turn ${rows.turn(row)}`);
  const turn = make("li", { class: row === state.row ? "exchange current" : failed ? "exchange failed" : "exchange", "data-row": row },
    label, ...bubbles(context, rows.roles(row), words, from), replies(rows, row, state, words, sharedWords(references)),
    references.length ? make("div", { class: "bubble reference" },
      make("span", { class: "speaker" }, references.length > 1 ? "References" : "Reference"),
      ...references.map((text) => fullText(text, words))) : null);
  if (row === state.row) turn.setAttribute("aria-current", "true");
  return turn;
};

const transcript = (rows, row, state, words) => {
  const all = rows.ofDialogue(row);
  const at = all.indexOf(row);
  const first = Math.max(0, Math.min(at - MOST_TURNS / 2, all.length - MOST_TURNS));
  const shown = all.slice(first, first + MOST_TURNS);
  const left = all.length - shown.length;
  return [
    left ? make("p", { class: "note" }, `${left} further turns of this dialogue are left out.`) : null,
    make("ol", { class: "transcript" }, ...shown.map((each, place) => turnOf(rows, each, place ? shown[place - 1] : null, state, words))),
  ];
};

// All scores of a row; of many systems a line for each of them.
const scoreTable = (rows, row, state) => {
  const { group } = rows;
  const order = [state.key, ...group.keys.keys()].filter((number, at) => at === 0 || number !== state.key)
    .filter((number) => number in group.keys); // the chosen score stands first
  const title = (number) => [isolated(group.keys[number].name),
    group.keys[number].level === "dialogue" ? make("span", { class: "aside" }, " whole dialogue") : null];
  const value = (number, system) => make("td", { class: "figure" }, figure(rows.scores[number][system]?.[row]));
  const reasons = (system) => make("td", {}, group.reasons[system]?.[row] || "–");
  const judged = group.reasons.some((said) => said?.[row]);
  const head = (first, cells) => make("tr", {}, make("th", { scope: "col" }, first), ...cells.map((cell) => make("th", { scope: "col" }, ...cell)));
  const line = (first, cells, kind = null) => make("tr", { class: kind }, make("th", { scope: "row" }, ...first), ...cells);
  const systems = group.systems.map((name) => [isolated(name, "name")]);
  const many = group.systems.length > MANY_SYSTEMS;
  const top = many
    ? head("System", [...order.map(title), ...(judged ? [["What the judge says"]] : [])])
    : head("Score", systems);
  const lines = many
    ? systems.map((name, system) => line(name, [...order.map((number) => value(number, system)), ...(judged ? [reasons(system)] : [])]))
    : [
      ...order.map((number) => line(title(number), systems.map((_, system) => value(number, system)), number === state.key ? "chosen" : null)),
      ...(judged ? [line(["What the judge says"], systems.map((_, system) => reasons(system)))] : []),
    ];
  const table = make("table", { class: "row" }, make("caption", { class: "hidden" }, "All scores of the row"),
    make("thead", {}, top), make("tbody", {}, ...lines));
  return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "All values" }, table);
};

const detail = (rows, row, state, words) => {
  const { group } = rows;
  const about = group.landed
    ? [block("Query", listOf(rows.context(row), words, "ul", null, rows.roles(row))),
      ...landings(rows, row, words, sharedWords(rows.references(row)))]
    : transcript(rows, row, state, words);
  return [...about.filter(Boolean), make("h4", {}, `Scores of ${rows.turn(row) === null ? "this row" : `turn ${rows.turn(row)}`}`), scoreTable(rows, row, state)];
};
