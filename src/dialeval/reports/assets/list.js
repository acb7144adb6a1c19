// A virtualized list: only visible lines are in the DOM. A listbox with one active line, moved by keys.

const LINE = 78; // pixels; the style sheet says the same
const AHEAD = 6; // lines beyond the edge

class List {
  // `draw(item)` returns the content of a line; `chosen(item)` is called when a line becomes active, `entered()` on Enter.
  constructor(box, { draw, chosen, entered }) {
    Object.assign(this, { box, draw, chosen, entered, items: [], at: 0 });
    this.canvas = make("div", { class: "canvas", role: "presentation" });
    box.replaceChildren(this.canvas);
    box.addEventListener("scroll", () => this.show(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => {
      const line = event.target.closest("[data-at]");
      if (line) this.move(Number(line.dataset.at));
    });
    new ResizeObserver(() => this.show()).observe(box);
  }

  // Replace the items; the given one is active.
  fill(items, active) {
    this.items = items;
    this.at = Math.max(0, items.indexOf(active));
    this.canvas.style.height = `${items.length * LINE}px`;
    this.box.scrollTop = Math.max(0, this.at * LINE - this.box.clientHeight / 3);
    this.show(true);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / LINE) - 1);
    const last = this.items.length - 1;
    const moves = {
      ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: last,
    };
    if (event.key === "Enter" && this.items.length) this.entered();
    else if (event.key in moves && !event.altKey && !event.ctrlKey && !event.metaKey) this.move(moves[event.key]);
    else return;
    event.preventDefault();
  }

  move(to) {
    if (!this.items.length) return;
    this.at = Math.min(Math.max(to, 0), this.items.length - 1);
    const top = this.at * LINE;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + LINE > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + LINE - this.box.clientHeight;
    this.show(true);
    this.chosen(this.items[this.at]);
  }

  show(anew = false) {
    const first = Math.max(0, Math.floor(this.box.scrollTop / LINE) - AHEAD);
    const stop = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / LINE) + AHEAD);
    if (!anew && first === this.first && stop === this.stop) return;
    Object.assign(this, { first, stop });
    const lines = [];
    for (let at = first; at < stop; at++) {
      const line = make("div", {
        class: "line", role: "option", id: `line-${at}`, "data-at": at, "aria-selected": String(at === this.at),
        "aria-setsize": this.items.length, "aria-posinset": at + 1,
      });
      line.style.transform = `translateY(${at * LINE}px)`;
      line.append(...this.draw(this.items[at]));
      lines.push(line);
    }
    this.canvas.replaceChildren(...lines);
    if (this.items.length && this.at >= first && this.at < stop) {
      this.box.setAttribute("aria-activedescendant", `line-${this.at}`);
    } else {
      this.box.removeAttribute("aria-activedescendant");
    }
  }
}
