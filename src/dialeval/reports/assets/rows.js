// The rows of a group: values, order, filters, search. Nothing here knows about the page.

const DISAGREE = 1; // standard deviations between two systems from which on they disagree

// The words that are searched for.
const searched = (state) => state.search.toLowerCase().split(/\s+/).filter(Boolean);

class Rows {
  constructor(group, texts) {
    this.group = group;
    this.texts = texts;
    this.count = group.rows.length;
    // A value of a dialogue is stored once and holds for all its rows.
    this.scores = group.scores.map((systems, key) =>
      group.keys[key].level === "turn"
        ? systems
        : systems.map((values) => values && group.dialogue.map((number) => values[number])));
    this.hits = new Map();
    this.spreads = new Map();
    this.failed = new Map();
  }

  // The rows of the dialogue that a row belongs to, in order.
  ofDialogue(row) {
    if (!this.members) {
      this.members = [];
      this.group.dialogue.forEach((number, each) => (this.members[number] ??= []).push(each));
    }
    return this.members[this.group.dialogue[row]];
  }

  // Which rows a system fails by a score: those with the worst value of a score of two values, else the worst tenth.
  failures(key, system) {
    const name = `${key} ${system}`;
    if (!this.failed.has(name)) {
      const column = this.scores[key]?.[system];
      const sign = this.group.keys[key]?.better === "lower" ? -1 : 1;
      const known = (column ?? []).filter((value) => value !== null).map((value) => sign * value).sort((a, b) => a - b);
      const two = new Set(known).size === 2;
      const limit = two ? known[0] : known[Math.floor(known.length / 10)];
      const failed = known.length > 1 && known[0] < known.at(-1);
      this.failed.set(name, Uint8Array.from({ length: this.count }, (_, row) =>
        failed && column[row] !== null && sign * column[row] <= limit ? 1 : 0));
    }
    return this.failed.get(name);
  }

  turn(row) {
    return this.group.turns?.[row] ?? null;
  }

  // The value of each row: a score of a system, or its difference from another's. NaN where there is none.
  values(key, system, minus) {
    const one = this.scores[key]?.[system];
    const two = minus === null ? null : this.scores[key]?.[minus];
    const values = new Float64Array(this.count).fill(NaN);
    if (!one || (minus !== null && !two)) return values;
    for (let row = 0; row < this.count; row++) {
      if (one[row] === null || (two && two[row] === null)) continue;
      values[row] = two ? one[row] - two[row] : one[row];
    }
    return values;
  }

  // Rows in the order asked for; those without a value come last.
  order(rows, values, sort) {
    if (sort === "file") return rows;
    const rank = { high: (x) => -x, low: (x) => x, far: (x) => -Math.abs(x) }[sort];
    const ranked = Float64Array.from(values, (value) => (Number.isNaN(value) ? Infinity : rank(value)));
    return rows.sort((a, b) => ranked[a] - ranked[b] || a - b);
  }

  // Which rows the state asks for.
  find(state, values) {
    const tests = searched(state).map((word) => this.holding(word));
    const wanted = state.dialogue.toLowerCase();
    if (wanted) tests.push((row) => this.dialogueName(row).toLowerCase().includes(wanted));
    if (state.slice !== null) {
      const inside = new Set(this.group.slices[state.slice].rows);
      tests.push((row) => inside.has(row));
    }
    if (state.low !== null) tests.push((row) => values[row] >= state.low);
    if (state.high !== null) tests.push((row) => values[row] <= state.high);
    if (state.disagree) {
      const spread = this.spread(state.key);
      tests.push((row) => spread[row] >= DISAGREE);
    }
    const found = [];
    for (let row = 0; row < this.count; row++) {
      if (tests.every((test) => test(row))) found.push(row);
    }
    return this.order(found, values, state.sort);
  }

  // Whether a row holds a word, in one of its texts or in its dialogue's name. Each distinct text is searched once.
  holding(word) {
    const seen = this.textsWith(word);
    const names = (this.group.dialogues ?? []).map((name) => name.toLowerCase().includes(word));
    const columns = [this.group.context, this.group.reference, ...this.group.responses].filter(Boolean);
    return (row) =>
      columns.some((column) => column[row].some((text) => seen[text])) ||
      (names.length > 0 && names[this.group.dialogue[row]]);
  }

  textsWith(word) {
    if (!this.hits.has(word)) {
      if (this.hits.size > 20) this.hits.clear(); // otherwise it grows with every word ever typed
      this.lowered ??= this.texts.map((text) => text.toLowerCase());
      this.hits.set(word, Uint8Array.from(this.lowered, (text) => text.includes(word)));
    }
    return this.hits.get(word);
  }

  // How far the systems are apart in each row, in standard deviations of the score.
  spread(key) {
    if (!this.spreads.has(key)) {
      const columns = (this.scores[key] ?? []).filter(Boolean);
      const all = columns.flat().filter((value) => value !== null);
      const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
      const deviation = Math.sqrt(all.reduce((sum, value) => sum + (value - mean) ** 2, 0) / all.length);
      const spread = new Float64Array(this.count);
      for (let row = 0; row < this.count && deviation > 0; row++) {
        const here = columns.map((column) => column[row]).filter((value) => value !== null);
        if (here.length > 1) spread[row] = (Math.max(...here) - Math.min(...here)) / deviation;
      }
      this.spreads.set(key, spread);
    }
    return this.spreads.get(key);
  }

  dialogueName(row) {
    return this.group.dialogues === null ? "" : this.group.dialogues[this.group.dialogue[row]];
  }

  // What a row is called: its dialogue and turn, or its place in the file.
  name(row) {
    const turn = this.turn(row);
    const parts = [this.dialogueName(row) || `row ${this.group.rows[row]}`];
    if (turn !== null) parts.push(`turn ${turn}`);
    return parts.join(" · ");
  }

  context(row) {
    return (this.group.context?.[row] ?? []).map((text) => this.texts[text]);
  }

  // Who said each turn of the context; nothing where the input does not say.
  roles(row) {
    return (this.group.roles?.[row] ?? []).map((text) => this.texts[text]);
  }

  references(row) {
    return (this.group.reference?.[row] ?? []).map((text) => this.texts[text]);
  }

  said(system, row) {
    return (this.group.responses[system]?.[row] ?? []).map((text) => this.texts[text]);
  }
}

// A figure as the page writes them: four decimals, an exponent where those would hide it.
const figure = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  if (value !== 0 && (Math.abs(value) < 5e-4 || Math.abs(value) >= 1e7)) return value.toExponential(2);
  return value.toFixed(4);
};
