// The page itself: choice of colors, commands to copy, what is open on paper, causes of failure. Controls that need a script are hidden
// until it runs.

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

// What is folded on the screen is open on paper, except for what can be very long.
const setPaper = () => {
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll(":is(#summary, #slices) details:not([open])"));
    closed.forEach((each) => each.setAttribute("open", ""));
  });
  addEventListener("afterprint", () => {
    closed.splice(0).forEach((each) => each.removeAttribute("open"));
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
});
