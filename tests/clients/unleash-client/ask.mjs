// Runs the Node SDK. Arguments: the API's URL, the token and the mode, as JSON, and an impact metric, if it is to report one:
// a counter, which it counts up to 4. Writes "ready", and then for each line
// of input, {"flags": […], "contexts": […]}, a line of output: for each context {flag: [enabled, variant]}.
import { createInterface } from "node:readline";
import { InMemStorageProvider, Unleash } from "unleash-client";

const [url, token, mode, counter] = process.argv.slice(2);
const unleash = new Unleash({
  url,
  appName: "sdk-check",
  environment: "default",
  instanceId: "node-1",
  customHeaders: { Authorization: token },
  refreshInterval: 500,
  disableMetrics: !counter,
  metricsInterval: 500,
  experimentalMode: JSON.parse(mode),
  storageProvider: new InMemStorageProvider(),
});
for (const name of ["error", "warn", "mode"]) {
  unleash.on(name, (told) => console.error(name, told));
}
unleash.once("synchronized", () => console.log(JSON.stringify("ready")));

if (counter) {
  unleash.impactMetrics.defineCounter(counter, "Help");
  unleash.impactMetrics.incrementCounter(counter, 4);
}

const evaluated = (flag, context) => [unleash.isEnabled(flag, context), unleash.getVariant(flag, context).name];

for await (const line of createInterface({ input: process.stdin })) {
  const { flags, contexts } = JSON.parse(line);
  const answers = contexts.map((context) =>
    Object.fromEntries(flags.map((flag) => [flag, evaluated(flag, context)])),
  );
  console.log(JSON.stringify(answers));
}
unleash.destroy();
