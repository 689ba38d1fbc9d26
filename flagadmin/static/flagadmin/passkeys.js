// Passkeys: <form data-passkey="create|get" hidden> has an input "credential", and its options in a script of type
// application/json or at data-options. It is shown where the browser has passkeys; what else says that it has none goes.
const known = window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.prototype.toJSON;

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!known) continue;
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    useDevice(form).catch((error) => tell(form, error));
  });
}
if (known) for (const note of document.querySelectorAll("[data-no-passkeys]")) note.remove();

async function useDevice(form) {
  tell(form, null);
  const { publicKey } = await optionsOf(form);
  const credential = form.dataset.passkey === "create"
    ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) })
    : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  form.submit();
}

async function optionsOf(form) {
  if (!form.dataset.options) return JSON.parse(form.querySelector("script[type='application/json']").textContent);
  const response = await fetch(form.dataset.options, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(response.statusText);
  return response.json();
}

function tell(form, error) {
  const words = {
    InvalidStateError: "This device has a passkey of your account already.",
    SecurityError: "Passkeys need HTTPS and the name that flagadmin is configured with.",
  };
  const place = form.querySelector("[data-passkey-error]");
  place.hidden = !error;
  place.textContent = error ? words[error.name] ?? "No passkey was used. Try again." : "";
}
