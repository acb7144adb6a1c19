// Interactive plots: drawn when they scroll into view, with a tooltip that shows text and nothing else.

const { charts, filled, config } = JSON.parse(document.getElementById("plots-data").textContent);
const tip = make("div", { class: "tip", hidden: true, role: "presentation" });
document.body.append(tip);

const showTip = (_handler, event, _item, value) => {
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  const lines = Object.entries(value).map(([name, text]) =>
    make("div", {}, make("span", { class: "aside" }, `${name} `), isolated(String(text))));
  tip.replaceChildren(...lines);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + height + 24 > innerHeight ? event.clientY - height - 10 : event.clientY + 16}px`;
};

const OPTIONS = { ast: true, actions: false, renderer: "svg", defaultStyle: false, mode: "vega-lite", tooltip: showTip, config };

const drawPlots = async (section) => {
  const plots = section.querySelector(".plots");
  plots.hidden = false;
  try {
    for (const place of plots.querySelectorAll("[data-plot]")) {
      const { chart, ...filling } = filled[place.dataset.plot];
      await vegaEmbed(place, { ...charts[chart], ...filling }, OPTIONS);
      place.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the table beside it is what is read aloud
    }
    section.classList.add("drawn");
    // The table is out of sight now, so no key should stop there.
    section.querySelectorAll(".drawing [tabindex]").forEach((each) => each.removeAttribute("tabindex"));
  } catch {
    plots.hidden = true; // the drawing beside it shows the same
  }
};

const watch = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    drawPlots(target);
  }
}, { rootMargin: "600px" });

document.querySelectorAll(".metric:has(.plots)").forEach((section) => watch.observe(section));
