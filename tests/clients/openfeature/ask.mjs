// Evaluates what the first argument lists with the server's SDK, and prints what the application gets, as JSON.
// argv: [{type, key, default, context}], base URL, headers.
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

const [asked, baseUrl, headers] = process.argv.slice(2).map((text, n) => (n === 1 ? text : JSON.parse(text)));
const METHODS = {
  boolean: "getBooleanDetails",
  string: "getStringDetails",
  integer: "getNumberDetails",
  float: "getNumberDetails",
  object: "getObjectDetails",
};

await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl, headers }));
const client = OpenFeature.getClient();
const found = [];
for (const one of asked) {
  found.push(await client[METHODS[one.type]](one.key, one.default, one.context));
}
console.log(JSON.stringify(found));
