// The order in which a rater sees the rows: drawn by the rater's name and the sample, so that it differs between raters
// and is the same whenever the page is opened.

// A number below 2^32 for a text (FNV-1a).
const hashed = (text) =>
  new TextEncoder().encode(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);

// Random numbers from 0 to 1 (splitmix32), the same ones for the same text.
const drawing = (text) => {
  let state = hashed(text);
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
};

const shuffled = (items, draw) => {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at -= 1) {
    const other = Math.floor(draw() * (at + 1));
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
};

// What comes when: every thing once, and a fraction of them twice. What comes again is of the first third and comes in the
// second half, so that nobody remembers it from a moment ago.
const sequenceOf = (data, rater) => {
  const key = `${rater}\n${data.digest}`;
  const draw = drawing(key);
  const order = shuffled(data.things, draw);
  const third = Math.floor(order.length / 3);
  const number = Math.min(third, Math.round(order.length * data.form.repeat));
  const half = Math.ceil(order.length / 2);
  const once = (thing) => ({ thing, again: false });
  const twice = shuffled(order.slice(0, third), draw).slice(0, number);
  const later = shuffled([...order.slice(half).map(once), ...twice.map((thing) => ({ thing, again: true }))], draw);
  return [...order.slice(0, half).map(once), ...later].map((each) => ({
    ...each,
    swapped: data.form.compare && drawing(`${key}\n${each.thing.id}\n${each.again}`)() < 0.5,
  }));
};
