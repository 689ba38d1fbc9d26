// node show.mjs PROGRAM: compiles the component in a .jsx or .vue file, shows it on a page, and prints its text once it is
// the one that argument two asks for.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { Window } from "happy-dom";

const [program, awaited] = process.argv.slice(2);
const page = new Window({ url: "http://localhost/" });
page.document.body.innerHTML = '<div id="app"></div>';
page.fetch = fetch; // its own would ask this page's origin for leave
Object.assign(globalThis, { window: page, document: page.document });
for (const name of ["Node", "Element", "HTMLElement", "SVGElement", "MathMLElement", "Text", "Comment", "MutationObserver"]) globalThis[name] ??= page[name];

let component = program;
const text = readFileSync(program, "utf8");
if (program.endsWith(".vue")) {
  const { compileScript, parse } = await import("vue/compiler-sfc");
  component = "compiled.mjs";
  writeFileSync(component, compileScript(parse(text).descriptor, { id: "app", inlineTemplate: true }).content);
}
const MAINS = {
  jsx: `import { createRoot } from "react-dom/client"; import { createElement } from "react"; import App from "COMPONENT";
        createRoot(document.getElementById("app")).render(createElement(App));`,
  vue: `import { createApp } from "vue"; import App from "COMPONENT"; createApp(App).mount("#app");`,
};
const { outputFiles } = await build({
  stdin: { contents: MAINS[program.split(".").pop()].replace("COMPONENT", `./${component}`), resolveDir: process.cwd() },
  bundle: true, write: false, format: "esm", platform: "browser", jsx: "automatic", logLevel: "error",
  nodePaths: [new URL("node_modules", import.meta.url).pathname],
  define: { "process.env.NODE_ENV": '"production"' },
});
await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

const shown = () => document.getElementById("app").textContent.trim();
const look = setInterval(() => {
  if (shown() !== awaited) return;
  clearInterval(look);
  console.log(shown());
  process.exit();
}, 20);
setTimeout(() => {
  console.error(`shown instead: ${shown()}`);
  process.exit(1);
}, 60_000);
