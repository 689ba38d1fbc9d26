// Runs axe on the page as it stands. Contrast takes most of axe's time, so it judges each combination of colors only once.
async ({rules, layout, contrast, known, again}) => {
  // Contrast is measured on the colors a page comes to rest in, not on those half way to another theme.
  await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null)));
  const scope = document.querySelector("dialog:modal") ?? document; // what is behind a modal dialog is inert
  const learned = [], seen = new Set(known);
  const learn = (key) => seen.has(key) || (seen.add(key), learned.push(key));
  const kind = (element) => element && `${element.localName}.${element.getAttribute("class") ?? ""}`;

  // On the second look at a document, all rules again only if a kind of element appeared that was never looked at so.
  const visible = [...scope.querySelectorAll("*")].filter((each) => each.checkVisibility({visibilityProperty: true}));
  const appeared = visible.filter((each) => !window.lookedAt?.has(each)).map((each) => `${kind(each.parentElement)} > ${kind(each)}`);
  const all = !again || appeared.some((key) => !seen.has(key));
  if (again) appeared.forEach(learn);
  window.lookedAt = new WeakSet(visible);
  const {violations} = await axe.run(scope, all ? rules : layout);

  // What decides on the contrast of a text: its font, its color and all that may lie below it.
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const {backgroundColor, backgroundImage, opacity, position, filter, mixBlendMode} = getComputedStyle(element);
      const place = /absolute|fixed|sticky/.test(position) ? kind(element) : "";
      const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, place].join();
      const isOpaque = opacity == 1 && /^rgb\(/.test(backgroundColor);
      const below = isOpaque ? "" : ground(element.parentElement);
      grounds.set(element, own == "rgba(0, 0, 0, 0),none,1,none,normal," ? below : `${own} ${below}`);
    }
    return grounds.get(element);
  };
  const texts = new Map();
  for (const element of visible) {
    const text = [...element.childNodes].map((node) => (node.nodeType == Node.TEXT_NODE ? node.data.trim() : "")).join("");
    if (!text && !element.matches("input, select, textarea")) continue;
    const {color, fontSize, fontWeight, textShadow} = getComputedStyle(element);
    const key = [color, fontSize, fontWeight, textShadow, ground(element)].join(" ");
    // axe does not judge icons, single letters, disabled controls and hidden labels, which says nothing of others.
    const tried = [kind(element.parentElement), kind(element), text.length < 2, !!element.closest(":disabled, [aria-disabled=true]"), key].join(" ");
    if (!seen.has(key) && !seen.has(tried)) texts.set(element, {key, tried});
  }
  if (texts.size) {
    const judged = await axe.run({include: [...texts.keys()]}, contrast);
    const elements = (results) => results.flatMap(({nodes}) => nodes.map(({element}) => element));
    elements(judged.violations).forEach((element) => texts.delete(element));
    for (const element of elements(judged.passes)) learn(texts.get(element)?.key);
    for (const {tried} of texts.values()) learn(tried);
    violations.push(...judged.violations);
  }
  // An open menu or a message may cover a part of what it lies on: axe would call that small. What a message covers can be
  // scrolled out from below it (test_messages.py).
  const isCovered = ({failureSummary}) => document.querySelector("details.more[open], .toast") && failureSummary.includes("partially obscured");
  const left = violations.map((each) => ({...each, nodes: each.nodes.filter((node) => !isCovered(node)).map(({element, ...node}) => node)}));
  return {violations: left.filter(({nodes}) => nodes.length), learned: learned.filter(Boolean)};
}
