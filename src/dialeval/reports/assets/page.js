// The page itself: choice of colors, commands to copy, tables that fit their window, what is open on paper, causes of
// failure. Controls that need a script are hidden until it runs.

const CHOICES = ["auto", "light", "dark"];
const STORED = "dialeval-colors";

const remembered = () => {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null; // a page from disk may have no storage
  }
};

const remember = (choice) => {
  try {
    localStorage.setItem(STORED, choice);
  } catch {
    // then the choice lasts as long as the page
  }
};

const paint = (choice) => {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
};

let colors = CHOICES.includes(remembered()) ? remembered() : "auto";
paint(colors);

const setTheme = (button) => {
  const now = document.getElementById("theme-now");
  const label = () => {
    now.textContent = colors[0].toUpperCase() + colors.slice(1);
    button.setAttribute("aria-label", `Colors: ${colors}`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    colors = CHOICES[(CHOICES.indexOf(colors) + 1) % CHOICES.length];
    paint(colors);
    remember(colors);
    label();
  });
  label();
};

const copied = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  throw new Error("no clipboard");
};

const selectText = (element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
};

const setCopy = (button) => {
  const code = button.parentElement.querySelector("code");
  const status = document.getElementById("copied");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await copied(code.textContent);
      status.textContent = button.textContent = "Copied";
    } catch {
      selectText(code); // so that one keystroke copies it
      status.textContent = button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
};

// A table that is wider than its place gets a narrower form: strips below values, then a card for each row.
const fitTable = (holder) => {
  const table = holder.querySelector("table");
  if (!table || !holder.clientWidth) return;
  const dense = table.dataset.dense === "1";
  table.classList.toggle("dense", dense);
  table.classList.remove("cards");
  const fits = () => holder.scrollWidth <= holder.clientWidth + 1;
  if (fits()) return;
  if (table.classList.contains("summary")) table.classList.add("dense");
  if (fits()) return;
  table.classList.toggle("dense", dense);
  table.classList.add("cards");
};

// Keep the title of each column with its cells, for cards.
const keepHeads = (table) => {
  table.dataset.dense = table.classList.contains("dense") ? "1" : "0";
  const heads = [...table.querySelectorAll("thead tr:last-child > *")].map((each) => each.textContent.trim());
  for (const row of table.tBodies[0]?.rows ?? []) {
    [...row.cells].forEach((cell, at) => {
      if (cell.tagName === "TD" && heads[at]) cell.dataset.head = heads[at];
    });
  }
};

const fitTables = (within) => {
  for (const holder of within.querySelectorAll(".wide")) {
    const table = holder.querySelector("table");
    if (table && !("dense" in table.dataset)) keepHeads(table);
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
  document.addEventListener("tables", (event) => fitTables(event.target));
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
    closed.push(...document.querySelectorAll(":is(#summary, #slices) details:not([open])"));
    closed.forEach((each) => each.setAttribute("open", ""));
    document.documentElement.classList.add("paper");
    fitTables(document);
  });
  addEventListener("afterprint", () => {
    closed.splice(0).forEach((each) => each.removeAttribute("open"));
    document.documentElement.classList.remove("paper");
    fitTables(document);
  });
};

// A number among the causes leaves only the dialogues that were lost by it; once more, and all are there again.
const setCauses = () => {
  const buttons = document.querySelectorAll("button[data-lost]");
  const dialogues = document.querySelectorAll(".dialogue");
  const show = (chosen) => {
    let shown = 0;
    for (const each of dialogues) {
      each.hidden = chosen !== null && !each.dataset.lost.split(" ").includes(chosen.dataset.lost);
      shown += each.hidden ? 0 : 1;
    }
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === chosen));
    document.getElementById("lost-shown").textContent =
      chosen === null ? "" : `${shown} of ${dialogues.length} dialogues are shown; choose the number again for all.`;
  };
  for (const button of buttons) {
    button.disabled = false;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => show(button.getAttribute("aria-pressed") === "true" ? null : button));
  }
};

document.addEventListener("DOMContentLoaded", () => {
  setTheme(document.getElementById("theme"));
  document.querySelectorAll(".copy").forEach(setCopy);
  setPaper();
  setCauses();
  setTables();
  reveal();
  addEventListener("hashchange", reveal);
});
