// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/try_page.h"

const char mtf_try_page[] =
    "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>meshtf-run</title>\n"
    "<style>body{font:16px sans-serif;max-width:45em;margin:2em auto}"
    "textarea,pre{width:100%;white-space:pre-wrap}</style>\n"
    "<h1>A prompt to go on with</h1><form><textarea name=\"prompt\" rows=\"6\"></textarea>\n"
    "<p><label>tokens <input name=\"max_tokens\" type=\"number\" min=\"1\" value=\"16\"></label>\n"
    "<label>temperature <input name=\"temperature\" type=\"number\" min=\"0\" step=\"any\" "
    "value=\"0.8\"></label> <button>Go on</button></p></form><pre></pre>\n"
    "<script>const form = document.forms[0], said = document.querySelector('pre');\n"
    "form.onsubmit = async event => {\n"
    "  event.preventDefault();\n"
    "  said.textContent = '…';\n"
    "  const body = {prompt: form.prompt.value, max_tokens: Number(form.max_tokens.value),\n"
    "                temperature: Number(form.temperature.value)};\n"
    "  try {\n"
    "    const answer = await fetch('/v1/completions', {method: 'POST', body: JSON.stringify(body)});\n"
    "    const json = await answer.json();\n"
    "    said.textContent = json.error ? json.error.message : body.prompt + json.choices[0].text;\n"
    "  } catch (error) { said.textContent = error.message; }\n"
    "};</script></html>\n";
