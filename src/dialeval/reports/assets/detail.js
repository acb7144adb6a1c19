// One row in full: the context, the references, and what every system said, side by side with its scores.

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

const detail = (rows, row, state, words) => {
  const { group } = rows;
  const parts = [];
  const context = rows.context(row);
  const references = rows.references(row);
  if (context.length) parts.push(block(group.landed ? "Query" : "Context", listOf(context, words, group.landed ? "ul" : "ol", null, rows.roles(row))));
  if (references.length && !group.landed) {
    parts.push(block(references.length > 1 ? "References" : "Reference", listOf(references, words, "ul")));
  }
  const shared = references.length ? new Set(references.flatMap((text) => text.toLowerCase().match(WORDS) ?? [])) : null;
  if (group.landed) parts.push(...landings(rows, row, words, shared));
  const head = make("tr", {}, make("th", { scope: "col" }, "System"),
    ...group.systems.map((name) => make("th", { scope: "col" }, isolated(name, "name"))));
  const lines = [];
  if (!group.landed && group.responses.some(Boolean)) {
    const cells = group.systems.map((_, system) => {
      const said = rows.said(system, row);
      const alone = said.length === 1 ? fullText(said[0], words, shared) : "–";
      const content = said.length > 1 ? listOf(said, words, "ul", shared) : alone;
      return make("td", { class: "said" }, content);
    });
    const about = shared && make("span", { class: "aside" }, "underlined: also in the reference");
    lines.push(make("tr", {}, make("th", { scope: "row" }, "Response ", about), ...cells));
  }
  if (group.reasons.some((said) => said?.[row])) {
    const cells = group.systems.map((_, system) => make("td", {}, group.reasons[system]?.[row] || "–"));
    lines.push(make("tr", {}, make("th", { scope: "row" }, "What the judge says"), ...cells));
  }
  // The chosen score stands first.
  const order = [state.key, ...group.keys.keys()].filter((number, at) => at === 0 || number !== state.key);
  order.filter((number) => number in group.keys).forEach((number) => {
    const key = group.keys[number];
    const cells = group.systems.map((_, system) =>
      make("td", { class: "figure" }, figure(rows.scores[number][system]?.[row])));
    const about = key.level === "dialogue" ? make("span", { class: "aside" }, " whole dialogue") : null;
    lines.push(make("tr", { class: number === state.key ? "chosen" : null },
      make("th", { scope: "row" }, isolated(key.name), about), ...cells));
  });
  const table = make("table", { class: "row" },
    make("caption", { class: "hidden" }, "What each system said, and its scores"),
    make("thead", {}, head), make("tbody", {}, ...lines));
  parts.push(make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Systems side by side" }, table));
  return [make("h3", {}, isolated(rows.name(row))), ...parts];
};
