// The page itself: texts and pictures to copy, tables that sort and fit their window, what is open on
// paper, causes of failure. Controls that need a script are hidden until it runs.

const copyText = async (text) => {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {
    // a page from disk may have no clipboard
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
};

// A button that copies, and says that it did.
const setCopy = (button, copy) => {
  const name = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await copy();
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => {
      button.textContent = name;
    }, 2000);
  });
};

const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

// A figure as a picture with its title: its styles are written into a copy, which a canvas draws.
const toPicture = async (figure) => {
  const svg = [...figure.querySelectorAll("svg")].find((each) => each.clientWidth);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const copy = svg.cloneNode(true);
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((each, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of PAINTED) each.setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  const [scale, top, edge] = [2, 48, 24];
  canvas.width = scale * (width + 2 * edge);
  canvas.height = scale * (height + top + edge);
  const pen = canvas.getContext("2d");
  const body = getComputedStyle(document.body);
  pen.scale(scale, scale);
  pen.fillStyle = body.backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = body.color;
  pen.font = `600 16px ${body.fontFamily}`;
  pen.fillText(figure.querySelector("figcaption b")?.textContent ?? "", edge, 32);
  pen.drawImage(image, edge, top, width, height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
};

const copyPicture = async (figure) => {
  const blob = await toPicture(figure);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
  } catch {
    const link = document.createElement("a"); // without a clipboard it becomes a file
    link.href = URL.createObjectURL(blob);
    link.download = "figure.png";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
};

// The heads of a table sort its lines; numbers by their value, and once more the other way.
const setSort = (head) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  if (!button.textContent.trim()) button.textContent = "name";
  head.append(button);
  const valueOf = (row) => {
    const cell = row.cells[head.cellIndex];
    const text = (cell.querySelector("b") ?? cell).textContent.replace(/[▲▼◆·<,\s]/g, "").replace("−", "-");
    const found = /^[+-]?[\d.]+/.exec(text.replace(/^p=?/, ""));
    return found ? Number(found[0]) : cell.textContent.trim().toLowerCase();
  };
  button.addEventListener("click", () => {
    const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    const body = head.closest("table").tBodies[0];
    const order = (one, other) => {
      if (typeof one === typeof other) return way * (one < other ? -1 : one > other ? 1 : 0);
      return typeof one === "number" ? -1 : 1; // what has no number comes last
    };
    const ranked = [...body.rows].map((row) => [valueOf(row), row]).sort(([one], [other]) => order(one, other));
    body.append(...ranked.map(([, row]) => row));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
  });
};

// A table that is wider than its place becomes a card for each line.
const fitTable = (holder) => {
  const table = holder.querySelector("table");
  if (!table || !holder.clientWidth) return;
  table.classList.remove("cards");
  table.classList.toggle("cards", holder.scrollWidth > holder.clientWidth + 1);
};

// Keep the title of each column with its cells, for cards.
const keepHeads = (table) => {
  const heads = [...table.querySelectorAll("thead tr:last-child > *")].map((each) => {
    const copy = each.cloneNode(true);
    copy.querySelectorAll(".hidden").forEach((hidden) => hidden.remove());
    return copy.textContent.trim();
  });
  for (const row of table.tBodies[0]?.rows ?? []) {
    [...row.cells].forEach((cell, at) => {
      if (cell.tagName === "TD" && heads[at]) cell.dataset.head = heads[at];
    });
  }
};

const fitTables = (within) => {
  for (const holder of within.querySelectorAll(".wide")) {
    const table = holder.querySelector("table");
    if (table && !table.dataset.kept) {
      table.dataset.kept = "1";
      keepHeads(table);
    }
    fitTable(holder);
  }
};

// Tables are fitted when the page opens, when its width changes, when they are unfolded, and when a script made them.
const setTables = () => {
  fitTables(document);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) fitTables(document);
    width = innerWidth;
  });
  document.addEventListener("toggle", (event) => fitTables(event.target), true);
};

// What a link leads to is unfolded.
const reveal = () => {
  const target = /^#[\w-]+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
  if (!target) return;
  let opened = false;
  for (let each = target; each; each = each.parentElement) {
    if (each.tagName === "DETAILS" && !each.open) opened = each.open = true;
  }
  if (opened) target.scrollIntoView();
};

// What is folded on the screen is open on paper, except for what can be very long.
const setPaper = () => {
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll(".drawer:not([open])"));
    closed.forEach((each) => each.setAttribute("open", ""));
    fitTables(document);
  });
  addEventListener("afterprint", () => {
    closed.splice(0).forEach((each) => each.removeAttribute("open"));
    fitTables(document);
  });
};

// A cause leaves only the dialogues that were lost by it; once more, and all are there again.
const setCauses = () => {
  const causes = document.querySelectorAll("[data-lost].cause");
  const dialogues = document.querySelectorAll(".dialogue");
  const show = (chosen) => {
    let shown = 0;
    for (const each of dialogues) {
      each.hidden = chosen !== null && !each.dataset.lost.split(" ").includes(chosen.dataset.lost);
      shown += each.hidden ? 0 : 1;
    }
    for (const each of causes) each.setAttribute("aria-current", String(each === chosen));
    const status = document.getElementById("lost-shown");
    status.textContent =
      chosen === null ? "" : `${chosen.querySelector("b").textContent}: ${shown} of ${dialogues.length} dialogues are shown; select it again for all.`;
    for (const rest of document.querySelectorAll("details.rest")) rest.open = chosen !== null;
    const first = [...dialogues].find((each) => !each.hidden && each.tagName === "DETAILS");
    if (first && chosen !== null) first.open = true;
    status.scrollIntoView();
  };
  for (const cause of causes) {
    cause.addEventListener("click", (event) => {
      event.preventDefault();
      show(cause.getAttribute("aria-current") === "true" ? null : cause);
    });
  }
};

document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-copy]")) setCopy(button, () => copyText(button.dataset.copy));
  for (const button of document.querySelectorAll(".copy")) setCopy(button, () => copyText(button.parentElement.querySelector("code").textContent));
  for (const button of document.querySelectorAll(".png")) setCopy(button, () => copyPicture(button.closest("figure")));
  document.querySelectorAll("th[data-sort]").forEach(setSort);
  setPaper();
  setCauses();
  setTables();
  reveal();
  addEventListener("hashchange", reveal);
});
