# SPDX-License-Identifier: GPL-3.0-or-later
"""What Jinja (Debian's python3-jinja2), asked as Hugging Face's library asks it, makes of templates in the manner of
published models' and of conversations:

    python3 tests/golden/chat/make_cases.py >tests/golden/chat/cases.json

Each case has a template, names, and what is said, or null where Jinja fails."""
import json
import sys

from jinja2 import ext
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}
{% endfor %}
{% if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{% endif %}
"""
INSTRUCT = """{%- if messages[0].role == 'system' -%}
    {%- set system = messages[0].content | trim -%}{%- set rest = messages[1:] -%}
{%- else -%}{%- set system = '' -%}{%- set rest = messages -%}{%- endif -%}
{{- bos_token -}}
{%- for m in rest -%}
  {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{ raise_exception('roles should alternate') }}
  {%- endif -%}
  {%- if m.role == 'user' -%}
    {{ '[INST] ' ~ (system + '\\n\\n' if loop.first and system else '') + m.content.strip() + ' [/INST]' }}
  {%- elif m.role == 'assistant' -%}
    {{ ' ' + m.content | trim + ' ' + eos_token }}
  {%- else -%}{{ raise_exception('the role ' + m.role) }}{%- endif -%}
{%- endfor -%}"""
HEADERS = """{% set ns = namespace(last=-1, n=0) %}
{# the last of the user #}
{% for m in messages[::-1] %}{% if m.role == "user" and ns.last < 0 %}{% set ns.last = messages|length - 1 - loop.index0 %}
{% endif %}{% endfor %}
{%- if tools is defined and tools %}Tools:
{%- for tool in tools %}
  {{ tool | tojson }}
{%- endfor %}
{% endif -%}
{%- for m in messages %}
    {%- set head = '<|start|>' + m['role'] + '<|end|>\\n' %}
    {%- set text = m.content if m.content is string else m.content | map(attribute='text') | join('/') %}
    {%- if '</think>' in text and loop.index0 < ns.last %}{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}
    {{- head + text + (eos_token if not loop.last else '') }}
    {%- set ns.n = ns.n + 1 %}
{%- endfor %}
{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}
    {{- '<think></think>' }}
{%- elif add_generation_prompt %}{{- '<|start|>assistant<|end|>' }}{% endif %}
 {{- ns.n }}"""
ODDS = ["{{ 7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 + 3 * 4 - 1 }} {{ (2 + 3) * 4 }} {{ 1.5 + 1 }}",
        "{{ [1, 'a', none, true, {'k': \"it's\"}] }} {{ (1, 2)[1] }} {{ [] or 'none' }} {{ '' and 1 }}|",
        "{{ messages | tojson }}\n{{ messages | tojson(indent=2) }}\n{{ {'a': 'é\\n\"', 'b': []} | tojson }}",
        "a \n  {%- if true %} b {%+ if true %} c {% endif -%} \n d{% endif %}\n\n e {# x #}\n f\n",
        "  {% if true %}\n  x\n  {% endif %}\n  y\n",
        "{% for k, v in messages[0].items() %}{{ k }}={{ v }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }} {{ m.role|upper }}{{ loop.revindex }} {% else %}no{% endfor %}",
        "{% for x in [] %}{% else %}nothing{% endfor %} {% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}"
        "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "{% set x = 1 %}{% for i in range(3) %}{% set x = x + i %}{{ x }}{% endfor %} {{ x }} {% set y %} said {{ x }} {% endset %}[{{ y }}]",
        "{{ 'Hello'[1:3] }} {{ 'Hello'[-1] }} {{ 'Hello'[::-1] | join }} {{ [1,2,3,4][1:-1] }} {{ [1,2,3,4][::2] }} {{ [1,2,3][5:] }}",
        "{{ nothing }}|{{ nothing is defined }}|{{ nothing | default('d') }}|{{ messages[0].nothing is undefined }}|{{ none }}",
        "{{ nothing.more }}", "{{ messages[0]['content'].nope() }}", "{{ 1 + 'a' }}", "{{ 'a' < 1 }}",
        "{{ 'a' 'b' ~ 1 ~ true }} {{ 'x' in 'axb' }} {{ 'q' not in ['a'] }} {{ not 'a' == 'b' }} {{ 1 if false }}|{{ 3 is odd }}",
        "{{ ' a b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'aXb'.lower().replace('x', '-') }} {{ 'one two'.title() }} {{ 'one TWO' | capitalize }}",
        "{{ 'ab'.startswith('a') }} {{ 'ab'.endswith('a') }} {{ 'xxaxx'.strip('x') }} {{ ', '.join(['a', 'b']) }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }}",
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | join(' ') }}",
        "{{ (messages | first).role }} {{ (messages | last).role }} {{ 'abc' | first if false else '3' | int + 1 }} {{ [3,1] | string | length }}",
        "{% if messages is iterable and messages is not string and messages[0] is mapping %}yes{% else %}no{% endif %}",
        "{{ loop is defined }} {% set ns = namespace(a=1) %}{% for i in range(2) %}{% set old = ns.a %}{% set ns.a = ns.a + old %}{{ old }},{% endfor %}{{ ns.a }}",
        "{% for i in range(3) %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}{{ {'a': {}} }}{{ \"a\\tb\\\\n\" }}",
        "{% set a, b = [1, 2] %}{{ a }}{{ b }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1} }} {{ 'b' > 'a' }} {{ 1 <= 1 }} {{ 1 != 1 }} {{ true == 1 }}"]
TALK = [{"role": "system", "content": " Be short.\n"}, {"role": "user", "content": "Hi 'there' \"é\""},
        {"role": "assistant", "content": "<think>hm</think>\n\nHello {{ x }}"}, {"role": "user", "content": " And?\n"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"a": [1, 2.5, True, None, "x/y"]}}}]


class Generation(ext.Extension):
    """Marks what is trained on; says its body."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def fail(message):
    raise TemplateError(message)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
environment.globals["raise_exception"] = fail


def case(template, **names):
    names = {"bos_token": "<s>", "eos_token": "</s>", **names}
    try:
        said = environment.from_string(template).render(**names)
    except Exception as why:
        said = None
        print(f"{template[:40]!r}: {why}", file=sys.stderr)
    return {"template": template, "names": names, "said": said}


cases = [case(CHATML, messages=TALK, add_generation_prompt=asked) for asked in (True, False)]
cases += [case(INSTRUCT, messages=talk) for talk in (TALK, TALK[1:], TALK[1:2], TALK[:1] + TALK[2:], TALK + TALK)]
cases += [case(HEADERS, messages=TALK, add_generation_prompt=True),
          case(HEADERS, messages=PARTS, add_generation_prompt=False),
          case(HEADERS, messages=TALK, tools=TOOLS, add_generation_prompt=True, enable_thinking=False)]
cases += [case(odd, messages=TALK) for odd in ODDS]
cases += [case("{% generation %}a{{ 1 }}{% endgeneration %}\n b", messages=[])]
print("[" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in cases) + "]")
