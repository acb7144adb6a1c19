// The dialogues of the page: a list, largest losses first, each opens as a transcript of all sides. What is
// shown is in the address: #d17, #dialogues?show=losses&slice=2.

const FIRST = 8; // dialogues that are listed at once
const MORE = 100;
const MOST_TEXT = 1500; // characters of a text that are shown until the rest is asked for
const TOOLS = new Set(["tool", "function", "tool_call", "tool_result"]);
const USERS = new Set(["user", "human", "customer"]);
const CALL = /^\[call /;

const number = (value, decimals, signed = false) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const shown = Math.abs(value).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const zero = !/[1-9]/.test(shown);
  return (zero ? "" : value < 0 ? "−" : signed ? "+" : "") + shown;
};

const decimalsOf = (values) => {
  const known = values.filter((value) => value !== null && !Number.isNaN(value));
  if (known.every(Number.isInteger)) return 0;
  const size = Math.max(...known.slice(0, 2000).map(Math.abs), 1e-9);
  return Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
};

class Dialogues {
  constructor(data) {
    this.data = data;
    this.count = data.numbers.length;
    this.decimals = data.scores.map((systems) => decimalsOf(systems.flatMap((values) => values ?? [])));
    // A difference of whole numbers is a mean, too.
    this.decimals.forEach((digits, key) => { if (!digits && data.metrics[key].level === "turn") this.decimals[key] = 2; });
    this.places = new Map(data.numbers.map((numbered, at) => [numbered, at]));
    this.kept = new Map();
  }

  has(system, at) {
    const { offsets } = this.data.sides[system];
    return offsets[at + 1] > offsets[at];
  }

  rows(system, at) {
    const { offsets } = this.data.sides[system];
    return Array.from({ length: offsets[at + 1] - offsets[at] }, (_, row) => offsets[at] + row);
  }

  score(key, system, at, row) {
    const column = this.data.scores[key]?.[system];
    if (!column) return null;
    return this.data.metrics[key].level === "turn" ? column[row] : column[at];
  }

  // The mean of a dialogue's rows; the difference to the first system over the rows that both have.
  value(key, system, at, minus) {
    const { data } = this;
    if (!this.has(system, at) || (minus && !this.has(0, at))) return NaN;
    const whole = data.metrics[key].level !== "turn";
    const mean = (values) => (values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : NaN);
    const known = (one) => (whole ? [this.score(key, one, at)] : this.rows(one, at).map((row) => this.score(key, one, at, row))).filter((each) => each !== null);
    if (!minus) return mean(known(system));
    if (whole || !data.paired[system]) return mean(known(system)) - mean(known(0));
    const others = this.rows(0, at);
    const changes = this.rows(system, at).map((row, turn) => [this.score(key, system, at, row), this.score(key, 0, at, others[turn])]);
    return mean(changes.filter(([one, other]) => one !== null && other !== null && other !== undefined).map(([one, other]) => one - other));
  }

  values(key, system, minus) {
    const name = `${key} ${system} ${minus}`;
    if (!this.kept.has(name)) this.kept.set(name, Float64Array.from({ length: this.count }, (_, at) => this.value(key, system, at, minus)));
    return this.kept.get(name);
  }

  texts(system, column, row) {
    return (this.data.sides[system][column]?.[row] ?? []).map((text) => this.data.texts[text]);
  }

  // What the user said first, else the name of the dialogue.
  opening(at) {
    for (let system = 0; system < this.data.sides.length; system++) {
      if (!this.has(system, at)) continue;
      const row = this.data.sides[system].offsets[at];
      const [turns, roles] = [this.texts(system, "context", row), this.texts(system, "roles", row)];
      const first = turns.findIndex((_, turn) => !roles[turn] || USERS.has(roles[turn].toLowerCase()));
      if (first >= 0) return turns[first];
    }
    return this.data.names[at] ?? `Dialogue ${this.data.numbers[at]}`;
  }

  holds(at, words) {
    const texts = this.data.sides.flatMap((_, system) => this.rows(system, at).flatMap((row) => ["context", "response", "reference"].flatMap((column) => this.texts(system, column, row))));
    const whole = [this.data.names[at] ?? "", ...texts].join("\n").toLowerCase();
    return words.every((word) => whole.includes(word));
  }
}

// A text with searched words marked; a very long one is cut, and a button shows the rest.
const textOf = (text, words = []) => {
  const holder = make("bdi", { dir: "auto" });
  const fill = (part) => {
    const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    const parts = wanted ? visible(part).split(new RegExp(`(${wanted})`, "iu")) : [visible(part)];
    holder.replaceChildren(...parts.map((each, at) => (at % 2 ? make("mark", {}, each) : each)));
  };
  if (text.length <= MOST_TEXT) {
    fill(text);
    return holder;
  }
  fill(`${text.slice(0, MOST_TEXT)}…`);
  const more = make("button", { type: "button" }, `Show all, ${(text.length - MOST_TEXT).toLocaleString("en")} more characters`);
  more.addEventListener("click", () => fill(text));
  return make("span", {}, holder, " ", more);
};

const markOf = (system, pair) => (pair && system ? "B" : "A");

class View {
  constructor(holder, data) {
    this.rows = new Dialogues(data);
    this.data = data;
    this.list = make("div");
    this.holder = holder;
    this.start = {
      key: data.key, system: data.systems.length > 1 ? data.system : 0, show: "all", slice: null, sort: "loss", q: "", low: null, high: null,
    };
    this.state = { ...this.start };
    this.shown = FIRST;
    this.tools = make("div", { class: "tools" });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": "Show" });
    this.status = make("p", { class: "hidden", role: "status" });
    this.more = make("button", { type: "button", class: "btn more" });
    this.more.addEventListener("click", () => { this.shown += MORE; this.draw(); });
    holder.append(this.chips, this.tools, this.status, this.list, make("p", { class: "note" }, this.more));
    this.makeTools();
  }

  get minus() {
    return this.state.system > 0 && !this.data.unpaired[this.state.system];
  }

  makeTools() {
    const select = (label, name, options) => {
      const box = make("select", {}, ...options.map(([value, text]) => make("option", { value }, visible(text))));
      box.addEventListener("change", () => this.go({ [name]: name === "sort" ? box.value : Number(box.value) }));
      box.dataset.name = name;
      this.tools.append(make("label", {}, label, box));
    };
    if (this.data.systems.length > 2 || this.data.unpaired.some(Boolean)) select("System", "system", this.data.systems.map((name, at) => [at, name]));
    if (this.data.metrics.length > 1) select("by", "key", this.data.metrics.map((metric, at) => [at, metric.name]));
    select("Order", "sort", [["loss", "worst first"], ["gain", "best first"], ["file", "as in the file"], ...(this.data.systems.length > 2 ? [["hard", "hard for all"], ["apart", "systems differ most"]] : [])]);
    const search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search in dialogues" });
    let wait = null;
    search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(() => this.go({ q: search.value }), 150); });
    search.dataset.name = "q";
    this.tools.append(search);
  }

  // Change what is shown, and keep it in the address.
  go(change) {
    this.state = { ...this.state, ...change };
    this.shown = FIRST;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state)) {
      if (value !== this.start[name] && value !== null && value !== "") query.set(name, value);
    }
    const tail = query.toString();
    history.replaceState(null, "", `#dialogues${tail ? `?${tail}` : ""}`);
    this.draw();
  }

  // Take what is shown from the address.
  read(query) {
    const state = { ...this.start };
    const within = (name, size) => { if (query.has(name) && Number(query.get(name)) >= 0 && Number(query.get(name)) < size) state[name] = Number(query.get(name)); };
    within("key", this.data.metrics.length);
    within("system", this.data.systems.length);
    within("slice", this.data.slices.length);
    const named = this.data.slices.findIndex(({ name }) => name === query.get("slice"));
    if (named >= 0) state.slice = named;
    for (const name of ["low", "high"]) if (query.has(name) && query.get(name) !== "" && Number.isFinite(Number(query.get(name)))) state[name] = Number(query.get(name));
    for (const name of ["show", "sort", "q"]) if (query.has(name)) state[name] = query.get(name);
    this.state = state;
    this.shown = FIRST;
    this.draw();
  }

  get sign() {
    return this.data.metrics[this.state.key]?.better === "lower" ? -1 : 1;
  }

  find() {
    const { state, rows, data } = this;
    const values = data.metrics.length ? rows.values(state.key, state.system, this.minus) : new Float64Array(rows.count).fill(NaN);
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const inside = state.slice === null ? null : new Set(data.slices[state.slice].dialogues);
    const there = (at) => (this.minus ? rows.has(0, at) && rows.has(state.system, at) : rows.has(state.system, at));
    const alone = (at) => !data.systems.every((_, system) => rows.has(system, at));
    const kinds = {
      all: (at) => there(at), losses: (at) => this.sign * values[at] < 0, gains: (at) => this.sign * values[at] > 0,
      ties: (at) => values[at] === 0, alone,
    };
    const all = Array.from({ length: rows.count }, (_, at) => at).filter((at) =>
      (inside === null || inside.has(at)) && (state.low === null || values[at] >= state.low) && (state.high === null || values[at] <= state.high) && (!words.length || rows.holds(at, words)));
    const counts = Object.fromEntries(Object.entries(kinds).map(([name, test]) => [name, all.filter(test).length]));
    const found = all.filter(kinds[state.show] ?? kinds.all);
    const spread = (at, pick) => {
      const known = data.systems.map((_, system) => rows.values(state.key, system, false)[at]).filter((value) => !Number.isNaN(value));
      return known.length ? pick(known) : NaN;
    };
    const rank = {
      loss: (at) => this.sign * values[at], gain: (at) => -this.sign * values[at], file: (at) => at,
      hard: (at) => this.sign * spread(at, (known) => known.reduce((sum, each) => sum + each, 0) / known.length),
      apart: (at) => -spread(at, (known) => Math.max(...known) - Math.min(...known)),
    }[state.sort] ?? ((at) => at);
    const ranks = new Map(found.map((at) => [at, Number.isNaN(rank(at)) ? Infinity : rank(at)]));
    return { values, counts, words, found: found.sort((a, b) => ranks.get(a) - ranks.get(b) || a - b) };
  }

  draw() {
    const { data, state, rows } = this;
    const { values, counts, words, found } = this.find();
    this.found = found;
    for (const box of this.tools.querySelectorAll("[data-name]")) if (document.activeElement !== box) box.value = state[box.dataset.name];
    const chip = (name, text, count) => {
      const made = make("button", { type: "button", class: "chip", "aria-pressed": String(state.show === name) }, text, make("i", {}, count.toLocaleString("en")));
      made.addEventListener("click", () => this.go({ show: name }));
      return made;
    };
    const chips = this.minus ? [chip("losses", "Got worse", counts.losses), chip("gains", "Got better", counts.gains)] : [];
    if (this.minus && counts.ties) chips.push(chip("ties", "No change", counts.ties));
    if (chips.length) chips.push(chip("all", "All", counts.all));
    if (counts.alone && !data.unpaired[state.system] && data.systems.length > 1) chips.push(chip("alone", "Not in all systems", counts.alone));
    const filters = [state.slice === null ? null : data.slices[state.slice].name, state.low === null ? null : `${number(state.low, 2)} to ${number(state.high, 2)}`];
    if (filters.some(Boolean)) {
      const clear = make("button", { type: "button", class: "chip", "aria-pressed": "true" }, visible(filters.filter(Boolean).join(", ")), make("i", {}, "✕"));
      clear.addEventListener("click", () => this.go({ slice: null, low: null, high: null }));
      chips.push(clear);
    }
    this.chips.replaceChildren(...chips);
    const part = rows.count < data.total ? ` Of ${data.total.toLocaleString("en")} dialogues ${rows.count.toLocaleString("en")} are in this page: those that differ most, and a random sample; the saved run has all.` : "";
    const about = document.querySelector(`[data-about]`);
    const pair = this.minus ? `${data.systems[state.system]} minus ${data.systems[0]} on ${data.metrics[state.key]?.name}, next to each other with the score of each reply.` : `${data.systems[state.system]}${data.metrics.length ? ` by ${data.metrics[state.key].name}` : ""}.`;
    about?.replaceChildren(isolated(`${pair}${part}`));
    this.status.textContent = `${found.length} dialogues`;
    const known = found.map((at) => values[at]).filter((value) => !Number.isNaN(value));
    const ends = [Math.min(0, ...known.slice(0, 5000)), Math.max(0, ...known.slice(0, 5000))];
    this.list.replaceChildren(...found.slice(0, this.shown).map((at) => this.line(at, values[at], ends, words)));
    if (!found.length) this.list.replaceChildren(make("p", { class: "note" }, "No matching dialogue."));
    const left = found.length - this.shown;
    this.more.hidden = left <= 0;
    this.more.textContent = left <= MORE ? `Show all ${found.length.toLocaleString("en")} dialogues` : `Show ${MORE} more of ${found.length.toLocaleString("en")} dialogues`;
    this.fill(this.list.querySelector("details"), found[0], words);
  }

  // Open a line of the list with its transcript.
  fill(line, at, words = [], query = new URLSearchParams()) {
    if (!line) return;
    line.querySelector(".body")?.remove();
    line.append(this.body(at, words, query));
    line.open = true;
  }

  line(at, value, [low, high], words) {
    const { data, state } = this;
    const better = data.metrics[state.key]?.better;
    const color = !this.minus || !better || !value ? "" : this.sign * value < 0 ? "neg" : "pos";
    const bar = make("span", { class: "bar" });
    if (high > low && !Number.isNaN(value)) {
      const zero = (100 * -low) / (high - low);
      const size = (100 * Math.abs(value)) / (high - low);
      const fill = make("i", { class: color });
      fill.style.left = `${value < 0 ? zero - size : zero}%`;
      fill.style.width = `${size}%`;
      bar.style.setProperty("--zero", `${zero}%`);
      bar.append(fill);
    }
    const where = data.slices.filter((slice) => slice.whole && (slice.set ??= new Set(slice.dialogues)).has(at)).map((slice) => slice.name.replace(/^[^:]*: /, ""));
    const shown = make("details", { class: "dlg", id: `d${data.numbers[at]}` },
      make("summary", {}, bar,
        make("span", { class: `d ${color === "neg" ? "bad" : color === "pos" ? "good" : ""}` }, data.metrics.length ? number(value, this.rows.decimals[state.key], this.minus) : ""),
        make("span", { class: "q" }, textOf(this.rows.opening(at).slice(0, 200), words)),
        make("span", { class: "w" }, isolated(data.names[at] && this.rows.opening(at) !== data.names[at] && !where.length ? data.names[at] : where.slice(0, 1).join(", "))),
        make("i", { class: "chev" })));
    shown.addEventListener("toggle", () => {
      if (shown.open && !shown.querySelector(".body")) shown.append(this.body(at, words));
    });
    return shown;
  }

  // Open a dialogue, which may be outside of what is listed.
  open(at, query = new URLSearchParams()) {
    const id = `d${this.data.numbers[at]}`;
    if (!document.getElementById(id)) {
      const place = this.found.indexOf(at);
      const { system } = this.start;
      const own = this.data.unpaired[system] && !this.rows.has(system, at) ? this.data.systems.findIndex((_, one) => this.rows.has(one, at)) : system;
      if (place < 0) { this.state = { ...this.start, system: own }; this.draw(); }
      this.shown = Math.max(this.shown, this.found.indexOf(at) + 1);
      this.draw();
    }
    let line = document.getElementById(id);
    if (!line) { this.state = { ...this.state, show: "alone" }; this.shown = Infinity; this.draw(); line = document.getElementById(id); }
    if (!line) return null;
    this.fill(line, at, [], query);
    this.current = at;
    line.scrollIntoView({ block: "start" });
    line.querySelector("summary").focus({ preventScroll: true });
    return line;
  }

  // The dialogue after or before one in the list.
  step(at, by) {
    const place = this.found.indexOf(at) + by;
    if (place >= 0 && place < this.found.length) location.hash = `#d${this.data.numbers[this.found[place]]}`;
  }

  sides(at) {
    const { state, data, rows } = this;
    const chosen = data.systems.length === 1 ? [0] : this.minus ? [0, state.system] : [state.system];
    const there = chosen.filter((system) => rows.has(system, at));
    return there.length ? there : data.systems.map((_, system) => system).filter((system) => rows.has(system, at)).slice(0, 2);
  }

  body(at, words, query = new URLSearchParams()) {
    const { data, state } = this;
    const every = state.sort === "hard" || state.sort === "apart";
    const sides = every ? data.systems.map((_, system) => system).filter((system) => this.rows.has(system, at)) : this.sides(at);
    if (data.sides.some((side) => side.trials)) return this.trials(at, words, query);
    const paired = sides.length < 2 || sides.every((system) => data.paired[system]);
    const content = data.sides[0].groups ? this.answers(at, sides, words) : paired ? this.together(at, sides, words) : this.apart(at, sides, words);
    const next = (by, text) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => this.step(at, by));
      return button;
    };
    const link = make("a", { href: `#d${data.numbers[at]}`, class: "note" }, `Link to ${data.names[at] ?? `dialogue ${data.numbers[at]}`}`);
    return make("div", { class: "body" }, this.heads(at, sides), ...content, this.table(at, sides), make("nav", { "aria-label": "Dialogues" }, next(-1, "Previous"), next(1, "Next"), link));
  }

  name(system, pair = true) {
    return make("b", { class: `sys${markOf(system, pair && this.data.systems.length > 1)}` }, isolated(this.data.systems[system], "name"));
  }

  heads(at, sides) {
    if (this.data.systems.length < 2) return null;
    return make("div", { class: "two heads" }, ...sides.map((system) => make("span", {}, this.name(system),
      this.data.metrics.length ? make("em", {}, number(this.rows.value(this.state.key, system, at, false), this.rows.decimals[this.state.key])) : null)));
  }

  // The turns before a reply: what users said, and calls and results of tools.
  before(system, row, words, tag = null) {
    const turns = this.rows.texts(system, "context", row);
    const roles = this.rows.texts(system, "roles", row);
    return turns.map((text, turn) => {
      const role = roles[turn] && roles[turn] !== text ? roles[turn] : null;
      const user = role ? USERS.has(role.toLowerCase()) : (turns.length - 1 - turn) % 2 === 0;
      if ((role && TOOLS.has(role.toLowerCase())) || CALL.test(text)) {
        const wrong = /^error/i.test(text);
        return make("details", { class: wrong ? "tool wrong" : "tool" }, make("summary", {}, make("code", {}, visible(text.slice(0, 120)))), textOf(text, words));
      }
      return make("p", { class: "said" }, make("b", {}, role ? visible(role[0].toUpperCase() + role.slice(1)) : user ? "User" : "Reply"), textOf(text, words), turn === turns.length - 1 ? tag : null);
    });
  }

  reply(system, at, row, other, words) {
    const { state, data, rows } = this;
    const said = rows.texts(system, "response", row);
    const metric = data.metrics[state.key];
    const value = metric?.level === "turn" ? rows.score(state.key, system, at, row) : null;
    const before = metric?.level === "turn" && other !== null ? rows.score(state.key, 0, at, other) : null;
    const change = value !== null && before !== null && before !== undefined ? value - before : null;
    const color = change && metric.better ? (this.sign * change < 0 ? "bad" : "good") : "soft";
    const reason = data.sides[system].reasons?.[row];
    const text = said.some(Boolean)
      ? said.map((each) => make("div", {}, textOf(each, words)))
      : [make("span", { class: data.sides[system].response ? "none" : "soft" }, data.sides[system].response ? "no reply" : "(its text is not in the run)")];
    return make("div", { class: `bub ${markOf(system, data.systems.length > 1)}` },
      make("div", {}, data.systems.length > 1 ? make("span", { class: "who" }, this.name(system)) : null, ...text, reason ? make("span", { class: "why" }, visible(reason)) : null),
      value === null ? null : make("span", { class: "v" }, number(value, rows.decimals[state.key]), change === null ? null : make("i", { class: color }, number(change, rows.decimals[state.key], true))));
  }

  references(system, row, words) {
    const references = this.rows.texts(system, "reference", row);
    return references.length ? make("p", { class: "refs" }, references.length > 1 ? "References: " : "Reference: ", ...references.flatMap((text, at) => [at ? " / " : "", textOf(text, words)])) : null;
  }

  // The turn with the largest loss; none if there is only one.
  decisive(at, sides) {
    const { state, data, rows } = this;
    const metric = data.metrics[state.key];
    const own = rows.rows(sides.at(-1), at);
    if (own.length < 2 || metric?.level !== "turn" || !metric.better) return -1;
    const first = sides.length > 1 ? rows.rows(0, at) : null;
    const losses = own.map((row, turn) => {
      const value = rows.score(state.key, sides.at(-1), at, row);
      const before = first ? rows.score(state.key, 0, at, first[turn]) : 0;
      return value === null || before === null ? Infinity : this.sign * (value - before);
    });
    const least = Math.min(...losses);
    return Number.isFinite(least) && (first === null || least < 0) ? losses.indexOf(least) : -1;
  }

  // Turns that all systems answer, replies next to each other.
  together(at, sides, words) {
    const decisive = sides.length > 2 ? -1 : this.decisive(at, sides);
    const all = sides.map((system) => this.rows.rows(system, at));
    return all[0].map((row, turn) => {
      const tag = turn === decisive ? make("span", { class: "tag" }, sides.length > 1 ? "Decisive turn" : "Worst turn") : null;
      const own = (system, place) => {
        const turns = place ? this.before(system, all[place][turn], words).filter((each) => each.matches("details")) : [];
        return make("div", {}, ...turns, this.reply(system, at, all[place][turn], place && sides[0] === 0 ? row : null, words));
      };
      return make("div", { class: turn === decisive ? "turn key1" : "turn" }, ...this.before(sides[0], row, words, tag), make("div", { class: "two" }, ...sides.map(own)), this.references(sides[0], row, words));
    });
  }

  // Dialogues whose turns differ, each a column of its own.
  apart(at, sides, words) {
    const column = (system) => make("div", {}, make("span", { class: "who" }, this.name(system)), ...this.rows.rows(system, at).map((row) =>
      make("div", { class: "turn" }, ...this.before(system, row, words), this.reply(system, at, row, null, words), this.references(system, row, words))));
    return [make("div", { class: "two" }, ...sides.map(column))];
  }

  // The trials of a task, one at a time: that of each system, with calls against expected ones.
  trials(at, words, query) {
    const { data } = this;
    const sides = this.sides(at);
    const listed = new Map(sides.map((system) => {
      const rows = this.rows.rows(system, at);
      const begins = rows.filter((row) => data.sides[system].trials?.[row]);
      const found = begins.flatMap((row, place) => data.sides[system].trials[row].map((trial) => ({ ...trial, rows: rows.filter((each) => each >= row && (place + 1 >= begins.length || each < begins[place + 1])) })));
      return [system, found];
    }));
    const names = [...new Set([...listed.values()].flat().map((trial) => String(trial.trial)))];
    const asked = query.get("trial");
    const failed = listed.get(sides.at(-1))?.find((trial) => trial.reward !== null && trial.reward < 1 - 1e-6);
    let chosen = names.includes(asked) ? asked : String(failed?.trial ?? names[0]);
    const holder = make("div", { class: "body" });
    const draw = () => {
      const tabs = names.map((name) => {
        const tab = make("button", { type: "button", class: "chip", "aria-pressed": String(name === chosen) }, `Trial ${name}`);
        tab.addEventListener("click", () => { chosen = name; draw(); });
        return tab;
      });
      const column = (system) => {
        const trial = listed.get(system).find((each) => String(each.trial) === chosen);
        if (!trial) return make("div", {}, this.name(system), make("p", { class: "note" }, "No such trial."));
        const passed = trial.reward === null ? null : trial.reward >= 1 - 1e-6;
        const facts = [passed === null ? "? no result" : passed ? "✓ passed" : "✕ failed", trial.end ? `ended by ${trial.end}` : "", trial.cost === null ? "" : `cost ${trial.cost}`, ...Object.entries(trial.parts ?? {}).map(([part, value]) => `${part} ${value}`)];
        const calls = trial.rows.flatMap((row) => data.sides[system].calls?.[row] ?? []);
        const kinds = { "=": ["", "✓", ""], "-": ["del", "−", "never called"], "+": ["add", "+", "not expected"], " ": ["", "·", ""] };
        const diff = calls.map(([kind, call, about]) => {
          const [style, mark, meaning] = kinds[kind];
          return make("li", { class: style }, make("b", {}, mark), make("span", {}, visible(call), about || meaning ? make("small", {}, visible(about || meaning)) : null));
        });
        return make("div", { "data-trial": `${system}-${chosen}` }, this.name(system), make("span", { class: passed === false ? "note bad" : "note" }, ` ${visible(facts.filter(Boolean).join(", "))}`),
          ...trial.rows.map((row) => make("div", { class: "turn" }, ...this.before(system, row, words), this.reply(system, at, row, null, words))),
          diff.length ? make("h4", {}, "Expected and actual calls") : null, diff.length ? make("ul", { class: "diff" }, ...diff) : null);
      };
      holder.replaceChildren(make("div", { class: "chips" }, ...tabs), make("div", { class: "two" }, ...sides.map(column)));
      holder.querySelectorAll(".wrong").forEach((each) => { each.open = true; });
    };
    draw();
    return holder;
  }

  // Sampled answers: groups of references, and below each the answers that landed there.
  answers(at, sides, words) {
    const { data } = this;
    const row = this.rows.rows(sides[0], at)[0];
    const side = data.sides[sides[0]];
    const list = (texts) => make("ul", {}, ...texts.map((text) => make("li", {}, textOf(text, words))));
    const group = (title, references, place) => make("section", {}, make("h4", {}, title), list(references), make("div", { class: "two" }, ...sides.map((system) => {
      const own = (data.sides[system].landed?.[this.rows.rows(system, at)[0]] ?? []).filter((answer) => answer[1] === place);
      return make("div", { class: `bub ${markOf(system, data.systems.length > 1)}` }, make("div", {}, this.name(system), ...(own.length ? own.map(([text, , score]) => make("div", {}, textOf(data.texts[text], words), " ", make("small", { class: "soft" }, score === null ? "" : number(score, 2)))) : [make("div", { class: "soft" }, "no answer here")])));
    })));
    const groups = (side.groups[row] ?? []).map(([name, references], place) => group(isolated(`Group ${data.texts[name]}`), references.map((text) => data.texts[text]), place));
    return [make("p", { class: "said" }, ...this.rows.texts(sides[0], "context", row).map((text) => textOf(text, words))), ...groups, group("In no group", [], null)];
  }

  // All scores of the dialogue.
  table(at, sides) {
    const { data, rows } = this;
    if (data.metrics.length < 2) return null;
    const head = make("tr", {}, make("th", {}, ""), ...sides.map((system) => make("th", { scope: "col" }, isolated(data.systems[system], "name"))));
    const lines = data.metrics.map((metric, key) => make("tr", {}, make("th", { scope: "row" }, isolated(metric.name, "name")),
      ...sides.map((system) => make("td", {}, number(rows.value(key, system, at, false), rows.decimals[key])))));
    return make("details", { class: "scores" }, make("summary", {}, "All scores of this dialogue"), make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines))));
  }
}

let view;

// Follow the address: a dialogue with its trial, or a list with its filters.
const follow = () => {
  const [name, query] = location.hash.slice(1).split("?");
  if (name === "dialogues") {
    view.read(new URLSearchParams(query));
    document.getElementById(name)?.scrollIntoView();
    return;
  }
  const wanted = /^d(\d+)$/.exec(name);
  if (wanted && view.rows.places.has(Number(wanted[1]))) {
    view.open(view.rows.places.get(Number(wanted[1])), new URLSearchParams(query));
    document.querySelectorAll(".cell").forEach((cell) => cell.setAttribute("aria-current", String(cell.hash === location.hash)));
  }
};

document.addEventListener("DOMContentLoaded", () => {
  const [data] = JSON.parse(document.getElementById("explorer-data")?.textContent ?? "[]");
  if (!data) return;
  view = new View(document.querySelector("[data-dialogues]"), data);
  view.draw();
  follow();
  addEventListener("hashchange", follow);
  // A second click on the same link leads there again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && (link.hash ?? link.getAttribute("href")) === location.hash) follow();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { n: 1, p: -1, j: 1, k: -1 }[event.key];
    const line = document.activeElement?.closest?.(".dlg");
    if (!by) return;
    view.step(line ? view.rows.places.get(Number(line.id.slice(1))) : view.current ?? view.found[0], by);
  });
});
