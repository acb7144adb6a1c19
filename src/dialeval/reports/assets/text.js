// Text from outside: it becomes text nodes, never markup, and it cannot turn the line around it.

const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/gu;

// Control characters, direction overrides and halves of characters written out, as everywhere in the page.
const visible = (text) =>
  text.replace(UNSEEN, (char) => {
    const code = char.codePointAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });

// An element with attributes and children; a child that is a string is text.
const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
};

// A text set apart from the direction of what surrounds it.
const isolated = (text, kind = null) => make("bdi", { dir: "auto", class: kind }, visible(text));

const plural = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
