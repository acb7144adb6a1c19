// One row in full: the context, the references, and what every system said, side by side with its scores.

const SHOWN = 1500; // characters of a text that are shown until the rest is asked for

// A text with the searched words marked; a very long one is cut, and a button shows the rest.
const fullText = (text, words) => {
  const holder = make("div", { class: "text" });
  const fill = (part) => holder.replaceChildren(marked(part, words));
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

const marked = (text, words) => {
  const shown = visible(text);
  const holder = make("bdi", { dir: "auto" });
  const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  // Split by a group: every second part is a match.
  const parts = words.length ? shown.split(new RegExp(`(${wanted})`, "iu")) : [shown];
  parts.forEach((part, at) => holder.append(at % 2 ? make("mark", {}, part) : part));
  return holder;
};

const listOf = (texts, words, kind) =>
  make(kind, {}, ...texts.map((text) => make("li", {}, fullText(text, words))));

const block = (title, content) => make("section", {}, make("h4", {}, title), content);

const detail = (rows, row, state, words) => {
  const { group } = rows;
  const parts = [];
  const context = rows.context(row);
  const references = rows.references(row);
  if (context.length) parts.push(block("Context", listOf(context, words, "ol")));
  if (references.length) {
    parts.push(block(references.length > 1 ? "References" : "Reference", listOf(references, words, "ul")));
  }
  const head = make("tr", {}, make("th", { scope: "col" }, "System"),
    ...group.systems.map((name) => make("th", { scope: "col" }, isolated(name, "name"))));
  const lines = [];
  if (group.responses.some(Boolean)) {
    const cells = group.systems.map((_, system) => {
      const said = rows.said(system, row);
      const content = said.length === 1 ? fullText(said[0], words) : said.length ? listOf(said, words, "ul") : "–";
      return make("td", { class: "said" }, content);
    });
    lines.push(make("tr", {}, make("th", { scope: "row" }, "Response"), ...cells));
  }
  group.keys.forEach((key, number) => {
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
