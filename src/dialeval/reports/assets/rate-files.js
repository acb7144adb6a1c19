// Ratings as a file: downloaded, copied, and taken up again.

const linesText = (store) => [...store.lines.values()].map((line) => `${JSON.stringify(line)}\n`).join("");

const download = (store, rater) => {
  const address = URL.createObjectURL(new Blob([linesText(store)], { type: "application/jsonl" }));
  const name = `ratings-${rater.replace(/[^\p{L}\p{N}]+/gu, "_")}.jsonl`;
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};

// The ratings in a text, or what is wrong with it, line by line. `sequence` is what this rater was to rate.
const readLines = (text, data, rater, sequence) => {
  const known = new Set(sequence.map(({ thing, again }) => keyOf({ id: thing.id, again })));
  const lines = [];
  const problems = [];
  text.split(/\r?\n/).forEach((written, at) => {
    if (!written.trim()) return;
    try {
      const problem = faultOf(JSON.parse(written), data, rater, known);
      if (problem) throw new Error(problem);
      lines.push(JSON.parse(written));
    } catch (error) {
      problems.push(`line ${at + 1}: ${error instanceof SyntaxError ? "not JSON" : error.message}`);
    }
  });
  if (!lines.length && !problems.length) problems.push("the file holds no ratings");
  return { lines, problems };
};

const faultOf = (line, data, rater, known) => {
  if (line === null || typeof line !== "object") return "not a rating";
  if (line.rater !== rater) return `of another rater (${String(line.rater).slice(0, 64)})`;
  if (!known.has(keyOf(line))) return "of a row that is not to be rated here";
  if (line.scores === null || typeof line.scores !== "object") return "has no scores";
  for (const { name, choices } of data.form.qualities) {
    const value = Object.hasOwn(line.scores, name) ? line.scores[name] : undefined;
    if (!choices.some((choice) => choice.value === value)) return `has no answer to ${name}`;
  }
  const { marked = [] } = line;
  if (!Array.isArray(marked) || !marked.every(Number.isInteger)) return "has marks that are no turns";
  return null;
};

const buttonOf = (label, act, kind = null) => {
  const made = make("button", { type: "button", class: kind }, label);
  made.addEventListener("click", act);
  return made;
};

// Ratings out of the browser and in again. `changed` is called when a file was imported; `leave`, where there is one, ends
// the session of this rater.
const filesPart = (data, rater, sequence, store, { changed, leave }) => {
  const text = make("textarea", { readonly: true, rows: 6, "aria-label": "Ratings, a line each", spellcheck: "false" });
  const said = make("p", { role: "status", class: "note" });
  const problems = make("ul", { class: "problems" });
  const file = make("input", { type: "file", accept: ".jsonl,.json,.txt", id: "import" });
  file.addEventListener("change", async () => {
    const read = readLines(await file.files[0].text(), data, rater, sequence);
    file.value = "";
    problems.replaceChildren(...read.problems.map((problem) => make("li", {}, visible(problem))));
    if (read.problems.length) {
      said.textContent = "Nothing was imported, since the file has problems:";
      return;
    }
    store.save(...read.lines);
    said.textContent = `${read.lines.length} ratings were taken up.`;
    changed();
  });
  const take = make("details", {}, make("summary", {}, "Show them as text"), text);
  take.addEventListener("toggle", () => {
    text.value = linesText(store);
  });
  return make(
    "div",
    { id: "files" },
    make(
      "p",
      { class: "act" },
      buttonOf("Download", () => download(store, rater)),
      buttonOf("Copy", async () => {
        try {
          await navigator.clipboard.writeText(linesText(store));
          said.textContent = "Copied.";
        } catch {
          take.open = true;
          text.value = linesText(store);
          text.select(); // so that one keystroke copies it
          said.textContent = "Selected.";
        }
      }),
      make("label", { for: "import" }, "Import a file of yours:"),
      file,
      ...(leave ? [buttonOf("Another rater", leave)] : []),
    ),
    said,
    problems,
    take,
  );
};
