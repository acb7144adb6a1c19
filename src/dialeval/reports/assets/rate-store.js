// Where ratings are kept as one goes: in the browser, or on the server that the page came from. `lines` holds them by
// what was rated; `save` adds one or takes the place of an earlier one, and tells when something cannot be kept.

const keyOf = (line) => `${line.id}${line.again ? " again" : ""}`;
const byKey = (lines) => new Map(lines.map((line) => [keyOf(line), line]));

const inBrowser = (data, rater, tell) => {
  const place = `dialeval-rate:${data.digest}:${rater}`;
  const kept = () => {
    try {
      return byKey(JSON.parse(localStorage.getItem(place) ?? "[]"));
    } catch {
      return null; // no storage, or not ours
    }
  };
  const store = { lines: kept() ?? new Map() };
  store.save = (...lines) => {
    store.lines = kept() ?? store.lines; // another tab may have added some
    for (const line of lines) store.lines.set(keyOf(line), line);
    try {
      localStorage.setItem(place, JSON.stringify([...store.lines.values()]));
      tell("");
    } catch {
      tell("This browser keeps nothing: download your ratings before you close the page.");
    }
  };
  return store;
};

const RETRY = 2000;

const onServer = (data, tell) => {
  const store = { lines: byKey(data.lines) };
  const waiting = new Map();
  let busy = false;
  const send = async () => {
    if (busy || !waiting.size) return;
    busy = true;
    const [[key, line]] = waiting;
    try {
      const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(line) };
      const answer = await fetch("ratings", options);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      if (waiting.get(key) === line) waiting.delete(key);
      if (!waiting.size) tell("");
    } catch (error) {
      tell(`${waiting.size} not saved yet (${error.message}); trying again. Leave this page open.`);
      await new Promise((done) => setTimeout(done, RETRY));
    }
    busy = false;
    send();
  };
  addEventListener("beforeunload", (event) => {
    if (waiting.size) event.preventDefault();
  });
  store.save = (...lines) => {
    for (const line of lines) {
      store.lines.set(keyOf(line), line);
      waiting.set(keyOf(line), line);
    }
    send();
  };
  return store;
};

// Who rated last in this browser, so that a page that is opened again goes on.
const lastRater = (data) => {
  try {
    return localStorage.getItem(`dialeval-rate:${data.digest}`);
  } catch {
    return null;
  }
};

const rememberRater = (data, rater) => {
  try {
    if (rater === null) localStorage.removeItem(`dialeval-rate:${data.digest}`);
    else localStorage.setItem(`dialeval-rate:${data.digest}`, rater);
  } catch {
    // then the name is asked for again
  }
};
