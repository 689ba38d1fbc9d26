// Evaluates flags with the Node SDK's engine alone. For each line of input, {"features": […], "segments": […], "contexts":
// […]}, a line of output: for each context {flag: [enabled, variant]}.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const load = createRequire(import.meta.url);
const { defaultStrategies } = load("unleash-client/lib/strategy/index.js");
const { default: UnleashClient } = load("unleash-client/lib/client.js");

for await (const line of createInterface({ input: process.stdin })) {
  const { features, segments, contexts } = JSON.parse(line);
  const flags = new Map(features.map((flag) => [flag.name, flag]));
  const byId = new Map(segments.map((segment) => [segment.id, segment]));
  const repository = { getToggle: (name) => flags.get(name), getSegment: (id) => byId.get(id) };
  const client = new UnleashClient(repository, defaultStrategies);
  const evaluated = (name, context) => [
    client.isEnabled(name, context, () => false),
    client.getVariant(name, context).name,
  ];
  const answers = contexts.map((context) =>
    Object.fromEntries(features.map(({ name }) => [name, evaluated(name, context)])),
  );
  console.log(JSON.stringify(answers));
}
