// node serve.mjs PORT KEY CERTIFICATE: a SAML provider at http://localhost:PORT. Files are PEM.
// GET /metadata describes it. PUT /accounts/NAME sets an account's attributes, PUT /options what samlp.auth takes.
// GET /sso asks for a name, no password; GET /sso?name=NAME&AssertionConsumerServiceURL=… logs in without a request.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import samlp from "samlp";

const [port, key, cert] = process.argv.slice(2);
const issuer = `http://localhost:${port}/metadata`;
const signing = { issuer, key: readFileSync(key), cert: readFileSync(cert) };
const accounts = new Map();
let options = {};

const profileMapper = ({ name, attributes }) => ({
  getClaims: () => attributes,
  getNameIdentifier: () => ({ nameIdentifier: name, nameIdentifierFormat: options.nameIdentifierFormat }),
});

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

createServer(async (request, response) => {
  const url = new URL(request.url, issuer);
  const [, kind, name] = url.pathname.split("/");
  request.query = Object.fromEntries(url.searchParams);
  request.originalUrl = request.url;
  request.protocol = "http";
  response.set = (header, value) => response.setHeader(header, value);
  response.send = (body) => response.end(String(body));
  const failed = (error) => response.writeHead(500).end(String(error.stack ?? error));
  if (request.method === "PUT") {
    const sent = await json(request);
    if (kind === "accounts") accounts.set(name, sent);
    else options = sent;
    response.end();
  } else if (kind === "metadata") {
    samlp.metadata({ ...signing, profileMapper: { prototype: { metadata: [] } }, redirectEndpointPath: "/sso", postEndpointPath: "/sso" })(request, response);
  } else if (!("name" in request.query)) {
    const fields = Object.entries(request.query).map(([field, value]) => `<input type="hidden" name="${field}" value="${escaped(value)}">`);
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><html lang="en"><title>Provider</title><form>${fields.join("")}<label>Name <input name="name"></label> <button>Continue</button></form>`);
  } else {
    samlp.parseRequest(request, (error, asked) => {
      if (error) return failed(error);
      const to = asked?.assertionConsumerServiceURL ?? request.query.AssertionConsumerServiceURL;
      const getPostURL = (...given) => given.at(-1)(null, to);
      const about = { ...signing, profileMapper, getPostURL, destination: to, recipient: to, inResponseTo: asked?.id, RelayState: request.query.RelayState, ...options };
      if (!accounts.has(request.query.name)) return samlp.sendError({ ...about, error: { description: "no such person" } })(request, response, failed);
      const getUserFromRequest = () => ({ name: request.query.name, attributes: accounts.get(request.query.name) });
      samlp.auth({ ...about, getUserFromRequest })(request, response, failed);
    });
  }
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
