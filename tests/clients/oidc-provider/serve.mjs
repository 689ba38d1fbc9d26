// node serve.mjs PORT CALLBACK…: a provider at http://127.0.0.1:PORT with the client "flagadmin" (secret "s3cret"), and
// "public" without one. It requires PKCE. GET /accounts/NAME reads an account's claims, PUT sets them.
// Logging in takes a name that has claims, no password.
import { createServer } from "node:http";
import { json, text } from "node:stream/consumers";
import Provider from "oidc-provider";

const [port, ...callbacks] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const accounts = new Map();

// It tells flagadmin when somebody's session here ends.
const backchannel_logout_uri = new URL("/login/sso/logout/", callbacks[0]).href;
const post_logout_redirect_uris = callbacks.map((callback) => new URL("/login/", callback).href);
const client = { redirect_uris: callbacks, post_logout_redirect_uris, backchannel_logout_uri, backchannel_logout_session_required: true, grant_types: ["authorization_code"], response_types: ["code"] };
const provider = new Provider(issuer, {
  clients: [
    { ...client, client_id: "flagadmin", client_secret: "s3cret" },
    { ...client, client_id: "public", token_endpoint_auth_method: "none" },
  ],
  pkce: { required: () => true },
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  scopes: ["openid", "offline_access", "groups"],
  // By default it calls no address of this machine, and nobody that takes longer than 2.5 s.
  fetch: (url, { dispatcher, signal, ...options }) => fetch(url, options),
  cookies: { keys: ["for tests only"] },
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, name) => accounts.has(name) && { accountId: name, claims: () => ({ ...accounts.get(name), sub: name }) },
  // Nobody is asked to consent.
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid profile email groups");
    await grant.save();
    return grant;
  },
});

const login = `<!doctype html><html lang="en"><title>Provider</title>
<form method="post"><label>Name <input name="name"></label> <button>Continue</button> <button name="cancel" value="1">Cancel</button></form>`;

createServer(async (request, response) => {
  const [, kind, name] = request.url.split("/");
  if (kind === "accounts") {
    if (request.method === "PUT") accounts.set(name, await json(request));
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(accounts.get(name) ?? null));
  } else if (kind === "interaction" && request.method === "GET") {
    response.setHeader("Content-Type", "text/html");
    response.end(login);
  } else if (kind === "interaction") {
    const form = new URLSearchParams(await text(request));
    const result = form.has("cancel")
      ? { error: "access_denied", error_description: "The person has cancelled." }
      : { login: { accountId: form.get("name") } };
    await provider.interactionFinished(request, response, result);
  } else {
    await provider.callback()(request, response);
  }
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
