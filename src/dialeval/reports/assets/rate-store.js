// Where ratings are stored: in the browser, or on the server that the page came from. `lines` holds them by what was
// rated; `save` adds one or replaces an earlier one.

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

// The server acknowledges a rating when it is on its disk (204). Until then the rating is kept in the browser as well,
// each under a key of its own so that two tabs do not overwrite each other, and sent again after every failure and every
// reload. `store.unsent` counts these; `store.refused` has those that the server will never take, which do not hold up
// the others. `changed` is called whenever one of these changes.
const ACKNOWLEDGED = 204;
const REFUSED = [400, 413, 415];
const RETRY = [1, 2, 4, 8, 15]; // seconds
const PATIENCE = 20; // seconds

const onServer = (data, rater, changed) => {
  const place = `dialeval-rate:${data.digest}:${rater}:unsent:`;
  const store = { lines: byKey(data.lines), refused: new Map(), problem: "", kept: true };
  const waiting = new Map();
  const keep = (key, line) => {
    try {
      localStorage.setItem(place + key, JSON.stringify(line));
    } catch {
      store.kept = false;
    }
  };
  const forget = (key, line) => {
    try {
      // Another tab may have put a later answer there.
      if (localStorage.getItem(place + key) === JSON.stringify(line)) localStorage.removeItem(place + key);
    } catch {
      // nothing was kept
    }
  };
  const post = async (line) => {
    try {
      const answer = await fetch("ratings", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(line),
        redirect: "error",
        signal: AbortSignal.timeout?.(1000 * PATIENCE), // older browsers wait for longer
      });
      return answer.status;
    } catch {
      return null; // not reached
    }
  };
  let busy = false;
  let failures = 0;
  let wake = () => {};
  const send = async () => {
    if (busy) return;
    busy = true;
    while (waiting.size) {
      const [[key, line]] = waiting;
      const status = await post(line);
      const current = waiting.get(key) === line; // else it was answered anew in the meantime
      if (status === ACKNOWLEDGED || REFUSED.includes(status)) {
        failures = 0;
        store.problem = "";
        if (current) waiting.delete(key);
        if (status === ACKNOWLEDGED) forget(key, line);
        else if (current) store.refused.set(key, line);
        changed();
        continue;
      }
      store.problem = status === null ? "the server cannot be reached" : `the server answers with status ${status}`;
      if (current) {
        waiting.delete(key); // to the end, so that it holds up no other
        waiting.set(key, line);
      }
      changed();
      const seconds = RETRY[Math.min(failures, RETRY.length - 1)];
      failures += 1;
      await new Promise((done) => {
        wake = done;
        setTimeout(done, 1000 * seconds);
      });
    }
    busy = false;
  };
  store.unsent = () => waiting.size;
  store.retry = () => {
    failures = 0;
    wake();
  };
  const queue = (line) => {
    store.lines.set(keyOf(line), line);
    store.refused.delete(keyOf(line));
    waiting.set(keyOf(line), line);
  };
  store.save = (...lines) => {
    for (const line of lines) {
      queue(line);
      keep(keyOf(line), line);
    }
    changed();
    send();
  };
  addEventListener("online", store.retry);
  addEventListener("beforeunload", (event) => {
    if (waiting.size) event.preventDefault();
  });
  try {
    for (const key of Object.keys(localStorage).filter((each) => each.startsWith(place))) {
      const line = JSON.parse(localStorage.getItem(key));
      if (place + keyOf(line) === key) queue(line);
    }
  } catch {
    // no storage, or not ours
  }
  store.start = send;
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
