// The lead's page, which asks the server for news: who is where, how far raters agree, what is disputed.

const data = JSON.parse(document.getElementById("lead-data").textContent);
const main = document.getElementById("main");
const SECONDS = 5;
const MOST_DISPUTED = 200;

const drawn = (tag, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const picture = (width, height, words, ...children) =>
  drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": visible(words) }, ...children);
const box = (x, y, width, height, kind) => drawn("rect", { x, y, width, height, rx: 2, class: kind });
const percent = (part, whole) => `${Math.round((100 * part) / whole)}%`;
const fixed = (value, digits = 2) => (value === null ? "–" : value.toFixed(digits).replace("-", "−"));
const labelOf = (value, x, y) => drawn("text", { x, y }, fixed(value, 0));

const track = (part, whole) =>
  picture(120, 10, `${part} of ${whole}`, box(0, 0, 120, 10, "track"), box(0, 0, (120 * part) / Math.max(1, whole), 10, "bar"));

// How often a rater gave each answer.
const histogram = ({ name, values }, answers) => {
  const counts = values.map((value) => answers.filter((answer) => answer === value).length);
  const most = Math.max(1, ...counts);
  const words = values.map((value, at) => `${value}: ${counts[at]}`).join(", ");
  return picture(values.length * 16, 42, `${name}: ${words}`, ...values.flatMap((value, at) => {
    const height = (26 * counts[at]) / most;
    return [box(at * 16, 27 - height, 13, Math.max(height, 1), counts[at] ? "bar" : "track"), labelOf(value, at * 16 + 7, 40)];
  }));
};

// Where the raters of a disputed row stand on the scale.
const spreadOf = (values, answers) => {
  const place = (value) => 12 + (216 * values.indexOf(value)) / Math.max(1, values.length - 1);
  const ends = answers.map(({ value }) => place(value));
  const words = answers.map(({ rater, value }) => `${rater}: ${fixed(value, 0)}`).join(", ");
  return picture(240, 38, words, drawn("line", { x1: Math.min(...ends), x2: Math.max(...ends), y1: 12, y2: 12, class: "joined" }),
    ...ends.map((x) => box(x - 6, 6, 12, 12, "bar")), ...values.map((value) => labelOf(value, place(value), 35)));
};

const copying = (text, label) => {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.replaceWith(make("a", { href: text }, text));
    }
  });
  return button;
};

const cell = (head, ...children) => make("td", { "data-head": head }, ...children);
const raterRow = (study, rater) => {
  const { name, rated, assigned, seconds = null, same, again, higher = null, gold, link } = rater;
  return make("tr", {}, make("th", { scope: "row" }, isolated(name)),
    make("td", { class: "bars" }, track(rated, assigned)), cell("", rated ? `${rated} of ${assigned}` : "not started"),
    cell("seconds a row", fixed(seconds, 1)),
    make("td", { class: "bars" }, ...study.qualities.map((quality) => histogram(quality, quality.answersOf(name)))),
    cell("uncertain", String(study.qualities.reduce((sum, quality) => sum + quality.answersOf(name).filter((value) => value === null).length, 0))),
    cell("against the others", higher === null ? "–" : `${higher > 0 ? "+" : ""}${fixed(higher)}`),
    cell("same when asked again", again ? `${same} of ${again}` : "–"),
    study.gold ? cell("gold questions right", gold ? `${gold[0]} of ${gold[1]}` : "–") : null, make("td", {}, copying(link, "Copy link")));
};

const agreementOf = (quality) => {
  const parts = [[quality.same, "the same", "bar"], [quality.near, "1 apart", "joined"], [quality.far, quality.apart > 1 ? `${quality.apart} or more apart` : "different", "far"]];
  let x = 0;
  const total = quality.same + quality.near + quality.far;
  const bars = parts.map(([number, , kind]) => {
    const bar = box(x, 0, (500 * number) / total, 22, kind);
    x += (500 * number) / total;
    return bar;
  });
  return make("div", {}, make("h3", {}, isolated(quality.name), `: alpha ${fixed(quality.alpha)}`),
    make("p", { class: "soft" }, quality.low === null ? "1 is perfect, 0 is chance." : `95% interval ${fixed(quality.low)} to ${fixed(quality.high)}; 1 is perfect, 0 is chance.`),
    make("div", { class: "strip" }, picture(500, 22, parts.map(([number, words]) => `${number} ${words}`).join(", "), ...bars)),
    make("p", { class: "shares" }, ...parts.filter(([number]) => number).map(([number, words]) => make("span", {}, make("b", {}, percent(number, total)), ` ${words}`))));
};

const disputedRow = ({ id, values, context, responses, answers }) => {
  const turns = [...context.map((text) => make("p", {}, isolated(text, "text"))), ...responses.map((text) => make("p", {}, make("b", {}, isolated(text, "text"))))];
  const said = answers.map(({ rater, value, comment }) => make("p", {}, isolated(rater), `: ${fixed(value, 0)} `, comment ? isolated(`“${comment}”`) : null));
  return make("li", {}, make("details", { id: `row-${id}` },
    make("summary", {}, make("span", {}, make("small", {}, isolated(context.at(-1) ?? "")), make("b", {}, isolated(responses.join(" | ")))), spreadOf(values, answers)),
    make("div", { class: "whole" }, ...turns, ...said, make("p", {}, make("a", { href: `#row-${id}` }, "Link to this row")))));
};

// What the state means: by quality how far apart the answers about a row are, and which rows are disputed.
const studyOf = ({ form, things, gold }, state) => {
  const texts = new Map(things.map((thing) => [thing.id, thing]));
  const qualities = form.qualities.map(({ name, choices }) => {
    const values = [...new Set(choices.map(({ value }) => value).filter((value) => value !== null))].sort((one, other) => one - other);
    const rows = Object.entries(state.answers[name] ?? {}).map(([id, answers]) => {
      const given = Object.entries(answers).filter(([, value]) => value !== null);
      const spread = Math.max(...given.map(([, value]) => value)) - Math.min(...given.map(([, value]) => value));
      return { id, name, spread, several: given.length > 1, all: answers,
        answers: given.map(([rater, value]) => ({ rater, value, comment: state.comments[id]?.[rater] ?? "" })) };
    });
    const apart = Math.min(2, values.length - 1);
    const shared = rows.filter(({ several }) => several);
    const [alpha = null, low = null, high = null] = state.alpha[name] ?? [];
    return { name, values, apart, alpha, low, high, shared: shared.length,
      same: shared.filter(({ spread }) => spread === 0).length,
      near: shared.filter(({ spread }) => spread > 0 && spread < apart).length,
      far: shared.filter(({ spread }) => spread >= apart).length,
      disputed: shared.filter(({ id, spread }) => spread >= apart && texts.has(id)).map((row) => ({ ...row, ...texts.get(row.id), values })),
      answersOf: (rater) => rows.filter(({ all }) => Object.hasOwn(all, rater)).map(({ all }) => all[rater]) };
  });
  const disputed = new Map();
  for (const row of qualities.flatMap((quality) => quality.disputed)) {
    if (!disputed.has(row.id) || disputed.get(row.id).spread < row.spread) disputed.set(row.id, row);
  }
  return { title: form.title, gold: gold.length, rows: things.length - gold.length, qualities,
    disputed: [...disputed.values()].sort((one, other) => other.spread - one.spread) };
};

// Krippendorff's alpha from which on raters agree well, and roughly.
const [WELL, ROUGHLY] = [0.8, 0.4];

// The headline and a sentence on what to do; the quality with the lowest alpha decides.
const verdictOf = ({ qualities, disputed }) => {
  const known = qualities.filter(({ alpha }) => alpha !== null).sort((one, other) => one.alpha - other.alpha);
  if (!known.length) return ["Ratings are coming in", "Agreement is shown as soon as two raters have rated the same rows."];
  const [{ name, alpha, apart, same, near, shared }] = known;
  const how = alpha >= WELL ? "agree well" : alpha >= ROUGHLY ? "agree roughly" : "hardly agree";
  const several = disputed.length ? `; ${plural(disputed.length, "row is", "rows are")} disputed` : "";
  const kind = apart > 1 ? "the same or a neighboring answer" : "the same answer";
  const advice = disputed.length ? " Settle the disputed rows before you use the averages." : "";
  return [`Raters ${how}${several}`, `${percent(same + near, shared)} of the ${plural(shared, "row")} with two ratings or more got ${kind} (${visible(name)}).${advice}`];
};

const show = (state) => {
  const opened = [...document.querySelectorAll("details[open]")].map(({ id }) => id);
  const study = studyOf(data, state);
  const { qualities, disputed } = study;
  const [headline, lead] = verdictOf(study);
  const sum = (name) => state.raters.reduce((total, rater) => total + rater[name], 0);
  const shared = qualities.filter(({ alpha }) => alpha !== null);
  const heads = ["Rater", "Progress", "Rated", "Seconds a row", qualities.map(({ name }) => visible(name)).join(", "), "Uncertain", "Against the others",
    "Same when asked again", ...(study.gold ? ["Gold right"] : []), "Link"];
  main.replaceChildren(make("div", { class: "wrap" },
    make("h1", {}, headline), make("p", { class: "lead" }, lead),
    make("p", { class: "read" }, make("b", {}, isolated(study.title)), `: ${sum("rated")} of ${plural(sum("assigned"), "rating")} so far, ${plural(study.rows, "row")}; ` +
      `updated ${new Date().toLocaleTimeString()}. This page keeps itself up to date. Its link is for whoever leads the evaluation.`),
    make("p", { class: "act" }, make("a", { href: "ratings", download: "ratings.jsonl" }, "Download all ratings"), copying(`${headline}. ${lead}`, "Copy status")),
    state.flags.length ? make("div", { class: "notice" }, ...state.flags.map((flag) => make("p", {}, isolated(flag)))) : null,
    make("section", { id: "progress" }, make("h2", {}, "Raters"),
      make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", { scope: "col", class: at === 1 || at === 4 ? "bars" : null }, head)))),
        make("tbody", {}, ...state.raters.map((rater) => raterRow(study, rater))))),
    shared.length ? make("section", { id: "agreement" }, make("h2", {}, "Agreement so far"),
      make("p", { class: "soft" }, "How far apart the answers about one row are, at most"), ...shared.map(agreementOf)) : null,
    disputed.length ? make("section", { id: "disputed" }, make("h2", {}, "Disputed rows"),
      make("p", { class: "soft" }, "Farthest apart first. Open one for the conversation and the comments; dialeval rate merge --adjudicate makes a page to settle them."),
      make("ol", { class: "disputed" }, ...disputed.slice(0, MOST_DISPUTED).map(disputedRow)),
      disputed.length > MOST_DISPUTED ? make("p", { class: "soft" }, `${disputed.length - MOST_DISPUTED} more are left out here.`) : null) : null));
  for (const id of opened) {
    const before = document.getElementById(id);
    if (before) before.open = true;
  }
};

const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches("details")) {
    target.open = true;
    target.scrollIntoView();
  }
};

let current = JSON.stringify(data.state);
show(data.state);
reveal();
addEventListener("hashchange", reveal);
setInterval(async () => {
  try {
    const answer = await fetch("state");
    const text = await answer.text();
    if (!answer.ok || text === current) return;
    current = text;
    show(JSON.parse(text));
  } catch {
    // the server is away; the page shows what was known
  }
}, 1000 * SECONDS);
