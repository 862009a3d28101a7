// Loads the document into the reference. The browser fetches it while it reads the script of the reference.
const explorer = document.querySelector('openapi-explorer');

// Fills in the required headers of each form with their examples, such as the version of the client. The document declares no defaults
// for them: a server assumes none.
explorer.addEventListener('spec-loaded', ({ detail }) => {
  for (const { parameters = [] } of detail.tags.flatMap((tag) => tag.paths)) {
    for (const parameter of parameters) {
      if (parameter.in === 'header' && parameter.required && parameter.example !== undefined) {
        parameter.schema = { ...parameter.schema, default: parameter.example };
      }
    }
  }
});

/** Fetches the document, without the extensions of its schemas: the reference shows none, and reads a schema again at each use. */
async function load() {
  const openapi = await (await fetch('openapi.json')).json();
  for (const schema of Object.values(openapi.components?.schemas ?? {})) {
    for (const name of Object.keys(schema).filter((name) => name.startsWith('x-'))) delete schema[name];
  }
  return openapi;
}

// OpenAPI Explorer shows an error if it can't load the address either. Its script has run when the page is loaded. The timer lets the
// browser show the page before the work begins.
const loaded = load().catch(() => 'openapi.json');
addEventListener('load', () => setTimeout(async () => explorer.loadSpec(await loaded)));
