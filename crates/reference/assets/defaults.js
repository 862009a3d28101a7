// Fills in the required headers of each form with their examples, such as the version of the client. The document declares no defaults
// for them: a server assumes none.
document.querySelector('openapi-explorer').addEventListener('spec-loaded', ({ detail }) => {
  for (const { parameters = [] } of detail.tags.flatMap((tag) => tag.paths)) {
    for (const parameter of parameters) {
      if (parameter.in === 'header' && parameter.required && parameter.example !== undefined) {
        parameter.schema = { ...parameter.schema, default: parameter.example };
      }
    }
  }
});
