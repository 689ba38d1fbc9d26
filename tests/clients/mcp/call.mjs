// node call.mjs URL TOKEN: lists the tools and calls each with its arguments, which are read as JSON by tool.
// Prints what the server says of itself, the tools, and by tool its answer.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const examples = JSON.parse(readFileSync(0, "utf8"));
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const answers = {};
for (const { name } of tools) {
  answers[name] = await client.callTool({ name, arguments: examples[name] ?? {} });
}
const server = client.getServerVersion();
await client.close();
console.log(JSON.stringify({ server, tools, answers }));
