// From what is written in a form to the values of a request; what cannot be read is an error of its field.

import { FieldErrors } from "/page/form.js";
import { CORE_SCHEMA, load } from "/page/vendor/js-yaml.mjs";

const wrong = (pointer, detail) => new FieldErrors([{ pointer, detail }]);

/** A number where it is one; else the text, which the options read as the command line does. */
export const asWritten = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** Names with values, of YAML or JSON. Throws FieldErrors with the line. */
export const parsed = (text, pointer) => {
  let found;
  try {
    found = text ? load(text, { schema: CORE_SCHEMA }) : {};
  } catch (fault) {
    const line = fault.mark ? ` in line ${fault.mark.line + 1}` : "";
    throw wrong(pointer, `no YAML${line}: ${fault.reason ?? fault.message}`);
  }
  if (found === null || found === undefined) return {};
  if (typeof found !== "object" || Array.isArray(found)) throw wrong(pointer, "expected names with values, such as ignore_eos: true");
  return found;
};

/** Adds an option; one that is there already stands in the box and in a field. */
export const put = (options, name, value, pointer) => {
  if (options[name] !== undefined) throw wrong(pointer, `${name} stands in a field of its own as well`);
  options[name] = value;
};

/** Minutes as seconds. */
export const minutes = (text, pointer) => {
  const found = Number(text) * 60;
  if (!Number.isFinite(found)) throw wrong(pointer, "expected a number of minutes");
  return found;
};
