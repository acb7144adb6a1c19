// The explorer: controls, the list of rows, the row that is open, and the address that keeps all of it.

const PAUSE = 120; // milliseconds without a key before the search begins
const MOST_NAMES = 500; // dialogues that are suggested
const SORTS = { file: "as in the file", high: "highest first", low: "lowest first", far: "largest difference first" };
const { groups, texts } = JSON.parse(document.getElementById("explorer-data").textContent);

// What is shown first: where the second system differs most from the first, by a metric that says what is better.
const fresh = (group) => {
  const { systems, key } = groups[group];
  const several = systems.length > 1;
  return {
    group, search: "", key, system: several ? 1 : 0,
    minus: several ? 0 : null, sort: several ? "far" : "file", low: null, high: null, dialogue: "",
    slice: null, disagree: false, row: null,
  };
};

// The state in the address: `#explorer?search=...`; defaults are left out, and so is the first row of the list.
const toAddress = (state, first) => {
  const usual = { ...fresh(state.group), group: 0, row: first };
  const changed = Object.entries(state).filter(([name, value]) => value !== usual[name]);
  const written = (value) => (value === true ? "1" : value === null ? "" : String(value));
  const parameters = new URLSearchParams(changed.map(([name, value]) => [name, written(value)]));
  return changed.length ? `#explorer?${parameters}` : "#explorer";
};

const whole = (text, below) => (/^\d{1,9}$/.test(text ?? "") && Number(text) < below ? Number(text) : null);
const number = (text) => (text === null || text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));

// `#d17` is the 17th dialogue of the first rows, `#d17-2` of the second.
const fromDialogue = (hash) => {
  const [, number, place] = /^#d(\d{1,9})(?:-(\d{1,4}))?$/.exec(hash) ?? [];
  const group = number === undefined ? null : whole(String(Number(place ?? 1) - 1), groups.length);
  if (group === null) return null;
  const row = groups[group].dialogue.indexOf(groups[group].numbers.indexOf(Number(number)));
  return row < 0 ? null : { ...fresh(group), sort: "file", row };
};

const fromAddress = (hash) => {
  if (!hash.startsWith("#explorer?")) return fromDialogue(hash);
  const parameters = new URLSearchParams(hash.slice("#explorer?".length));
  const group = whole(parameters.get("group"), groups.length) ?? 0;
  const { systems, keys, rows, slices } = groups[group];
  const usual = fresh(group);
  return {
    group,
    search: parameters.get("search") ?? "",
    key: whole(parameters.get("key"), keys.length) ?? usual.key,
    system: whole(parameters.get("system"), systems.length) ?? usual.system,
    minus: parameters.has("minus") ? whole(parameters.get("minus"), systems.length) : usual.minus,
    sort: Object.hasOwn(SORTS, parameters.get("sort")) ? parameters.get("sort") : usual.sort,
    low: number(parameters.get("low")),
    high: number(parameters.get("high")),
    dialogue: parameters.get("dialogue") ?? "",
    slice: whole(parameters.get("slice"), slices.length),
    disagree: parameters.get("disagree") === "1",
    row: whole(parameters.get("row"), rows.length),
  };
};

class Explorer {
  constructor(place) {
    this.state = fromAddress(location.hash) ?? fresh(0);
    this.build(place);
    this.open(this.state.group);
    addEventListener("hashchange", () => {
      const state = fromAddress(location.hash);
      if (!state) return;
      this.state = state;
      this.open(state.group);
      this.scroll();
    });
    if (fromAddress(location.hash)) this.scroll();
  }

  // To the section, or to the dialogue that a link names.
  scroll() {
    (fromDialogue(location.hash) ? this.panes : document.getElementById("explorer")).scrollIntoView();
  }

  build(place) {
    const field = (label, control, kind = "") =>
      make("div", { class: `field ${kind}`.trim() }, make("label", { for: control.id }, label), control);
    const select = (name) => make("select", { id: `by-${name}` });
    this.controls = {
      group: select("group"), key: select("key"), system: select("system"), minus: select("minus"), sort: select("sort"),
      slice: select("slice"),
      search: make("input", { type: "search", id: "by-search", autocomplete: "off", spellcheck: "false" }),
      low: make("input", { type: "number", step: "any", id: "by-low" }),
      high: make("input", { type: "number", step: "any", id: "by-high" }),
      dialogue: make("input", { type: "search", id: "by-dialogue", list: "dialogue-names", autocomplete: "off" }),
      disagree: make("input", { type: "checkbox", id: "by-disagree" }),
    };
    const { controls } = this;
    this.fields = {
      group: field("Rows of", controls.group, "wide-field"),
      minus: field("minus", controls.minus),
      dialogue: field("Dialogue", controls.dialogue),
      slice: field("Slice", controls.slice),
      disagree: make("div", { class: "field check" }, controls.disagree,
        make("label", { for: controls.disagree.id }, "Systems disagree")),
    };
    this.fields.disagree.title = "Two systems are at least one standard deviation of the score apart";
    this.clear = make("button", { type: "button" }, "Clear");
    this.count = make("p", { class: "count", role: "status", "aria-live": "polite" });
    this.names = make("datalist", { id: "dialogue-names" });
    const form = make("div", { class: "controls", role: "search", "aria-label": "Find rows" },
      field("Search", controls.search, "wide-field"), this.fields.dialogue, this.names, this.fields.slice, this.fields.group,
      make("div", { class: "turn-line", role: "presentation" }),
      field("Score", controls.key), field("of", controls.system), this.fields.minus, field("Order", controls.sort),
      field("from", controls.low, "short"), field("to", controls.high, "short"), this.fields.disagree, this.clear);
    const box = make("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Rows", id: "row-list" });
    this.pane = make("div", { class: "pane", tabindex: "0", role: "region", "aria-label": "The chosen row" });
    this.title = make("h3", {});
    this.link = make("a", { class: "permalink" });
    const step = (by, text, key) => {
      const button = make("button", { type: "button", title: `Key ${key} in the list or the row` }, text);
      button.addEventListener("click", () => this.toFailure(by));
      return button;
    };
    this.steps = [step(-1, "‹ Previous failure", "p"), step(1, "Next failure ›", "n")];
    const bar = make("div", { class: "pane-bar" }, this.title, this.link, ...this.steps);
    const right = make("div", { class: "pane-side" }, bar, this.pane);
    this.panes = make("div", { class: "panes" }, box, right);
    this.panes.addEventListener("keydown", (event) => {
      if (!["n", "p"].includes(event.key) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.toFailure(event.key === "n" ? 1 : -1);
    });
    place.replaceChildren(form, this.count, this.panes);
    this.list = new List(box, {
      draw: (row) => this.line(row),
      chosen: (row) => { this.state.row = row; this.showRow(); this.keep(); },
      entered: () => this.pane.focus(),
    });
    this.pane.addEventListener("keydown", (event) => {
      if (event.key === "Escape") box.focus();
    });
    this.listen();
  }

  listen() {
    const { controls } = this;
    const orNone = (text) => (text === "" ? null : Number(text));
    const read = {
      key: Number, system: Number, minus: orNone, slice: orNone, sort: String,
      search: String, low: number, high: number, dialogue: String,
    };
    for (const [name, parse] of Object.entries(read)) {
      const typed = controls[name].tagName === "INPUT";
      let waiting = null; // one timer per field: typing in the next one must not cancel it
      controls[name].addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => {
          this.state[name] = parse(controls[name].value);
          if (name === "minus" || name === "system") this.offerSorts();
          this.update();
        }, typed ? PAUSE : 0);
      });
    }
    controls.disagree.addEventListener("change", () => { this.state.disagree = controls.disagree.checked; this.update(); });
    controls.group.addEventListener("input", () => {
      this.state = fresh(Number(controls.group.value));
      this.open(this.state.group);
    });
    this.clear.addEventListener("click", () => {
      this.state = fresh(this.state.group);
      this.open(this.state.group);
      controls.search.focus();
    });
  }

  // Show a group of systems and set every control to the state.
  open(at) {
    const { controls, fields, state } = this;
    const group = groups[at];
    if (!this.rows || this.rows.group !== group) this.rows = new Rows(group, texts);
    const option = (value, text) => make("option", { value }, visible(text));
    controls.group.replaceChildren(...groups.map((each, number) => option(number, each.systems.join(", "))));
    controls.key.replaceChildren(...group.keys.map((key, number) => option(number, key.name)));
    controls.system.replaceChildren(...group.systems.map((name, number) => option(number, name)));
    controls.minus.replaceChildren(option("", "nothing"), ...group.systems.map((name, number) => option(number, name)));
    controls.slice.replaceChildren(option("", "all rows"), ...group.slices.map((each, number) => option(number, each.name)));
    this.names.replaceChildren(...(group.dialogues ?? []).slice(0, MOST_NAMES).map((name) => option(name, "")));
    fields.group.hidden = groups.length < 2;
    fields.dialogue.hidden = group.dialogues === null;
    fields.slice.hidden = group.slices.length === 0;
    fields.minus.hidden = fields.disagree.hidden = group.systems.length < 2;
    this.offerSorts();
    for (const name of ["group", "key", "system", "search", "dialogue"]) controls[name].value = state[name];
    for (const name of ["minus", "slice", "low", "high"]) controls[name].value = state[name] ?? "";
    controls.disagree.checked = state.disagree;
    this.update(state.row);
  }

  offerSorts() {
    const { sort } = this.controls;
    const offered = Object.entries(SORTS).filter(([name]) => name !== "far" || this.state.minus !== null);
    if (!offered.some(([name]) => name === this.state.sort)) this.state.sort = "file";
    sort.replaceChildren(...offered.map(([value, text]) => make("option", { value }, text)));
    sort.value = this.state.sort;
  }

  // Filter and sort the rows again; the first of them is open unless the address names another.
  update(kept = null) {
    const { state, rows } = this;
    const started = performance.now();
    this.values = rows.values(state.key, state.system, state.minus);
    const found = rows.find(state, this.values);
    this.first = found[0] ?? 0;
    state.row = found.includes(kept) ? kept : this.first;
    this.words = searched(state);
    this.list.fill(found, state.row);
    this.showRow(found.length === 0);
    const total = rows.count.toLocaleString("en");
    this.count.textContent = `${found.length.toLocaleString("en")} of ${total} ${rows.count === 1 ? "row" : "rows"}`;
    this.count.dataset.took = String(performance.now() - started);
    this.keep();
  }

  line(row) {
    const { rows, state } = this;
    const asked = rows.context(row).at(-1) ?? rows.references(row)[0] ?? "";
    const said = rows.said(state.system, row)[0] ?? "";
    const value = Number.isNaN(this.values[row]) ? "–" : figure(this.values[row]);
    const signed = state.minus !== null && this.values[row] > 0 ? `+${value}` : value;
    const place = make("div", { class: "place" }, isolated(rows.name(row)), make("span", { class: "value" }, signed));
    const texts = [asked, said].filter(Boolean).map((text) => text.slice(0, 200));
    if (texts.length < 2) return [place, ...texts.map((text) => make("div", { class: "answered alone" }, isolated(text)))];
    return [place, make("div", { class: "asked" }, isolated(texts[0])), make("div", { class: "answered" }, isolated(texts[1]))];
  }

  showRow(nothing = false) {
    const { rows, state, pane } = this;
    for (const each of [this.title, this.link, ...this.steps]) each.hidden = nothing;
    if (nothing) {
      pane.replaceChildren(make("p", { class: "note" }, "No matching row."));
      return;
    }
    const number = rows.group.numbers[rows.group.dialogue[state.row]];
    const place = state.group ? `#d${number}-${state.group + 1}` : `#d${number}`;
    this.title.replaceChildren(isolated(rows.name(state.row)));
    this.link.replaceChildren(place);
    this.link.setAttribute("href", place);
    pane.replaceChildren(...detail(rows, state.row, state, this.words));
    pane.dispatchEvent(new Event("tables", { bubbles: true }));
    const current = pane.querySelector(".exchange.current");
    pane.scrollTop = current ? Math.max(0, current.offsetTop - pane.offsetTop - 12) : 0;
  }

  // The next row of the list, or the one before, in which the chosen system fails by the chosen score.
  toFailure(by) {
    const { list, rows, state } = this;
    const failed = rows.failures(state.key, state.system);
    let at = list.at + by;
    while (at >= 0 && at < list.items.length && !failed[list.items[at]]) at += by;
    if (at >= 0 && at < list.items.length) list.move(at);
  }

  keep() {
    const asked = toAddress(this.state, this.first);
    if (asked === "#explorer" && !location.hash.startsWith("#explorer")) return;
    if (asked !== location.hash) history.replaceState(null, "", asked);
  }
}

new Explorer(document.getElementById("explorer-place"));
