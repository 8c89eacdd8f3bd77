# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-run --serve answers requests for completions with what --generate says, on any number of ranks
# and whoever else asks; bad requests get one clear error each; a signal ends it.
. tests/support/tap.sh
tokenizer=tests/golden/tokenizers/gpt2.json
server=

# serve RANKS OPTION…: starts a server of $tokenizer and finds its address.
serve() {
    ranks=$1
    shift
    rm -f "$work/log"
    launcher="mpirun -n $ranks"
    [ "$ranks" != 1 ] || launcher=
    # The launcher is split into words on purpose.
    # shellcheck disable=SC2086
    $launcher meshtf-run "$work/p.json" --data LICENSE --tokenizer $tokenizer --seed 5 --serve 0 "$@" \
        >"$work/log" 2>&1 </dev/null &
    server=$!
    tries=0
    until grep -qs 127.0.0.1 "$work/log" || [ $tries = 200 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    url=$(sed -n 's/.*\(http:..127.0.0.1:[0-9]*\).*/\1/p' "$work/log")
}

# ask BODY [OPTION…]: the answer is in $work/out, its status in $http
ask() {
    body=$1
    shift
    http=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/completions" -d "$body" "$@")
}

answers() {
    [ "$http" = "$1" ]
}

# has FILTER: jq finds it true of the answer.
has() {
    jq -e "$1" "$work/out" >/dev/null
}

# tells TEXT: the answer's error has it.
tells() {
    jq -e --arg text "$1" '.error.message | contains($text)' "$work/out" >/dev/null
}

ends() { # SIGNAL STATUS
    kill "-$1" "$server"
    wait "$server"
    [ $? = "$2" ]
}

# plan MESH LAYOUT: the whole model; where LAYOUT is options of a search, in stages.
plan() {
    case $2 in
    --*)
        # shellcheck disable=SC2086
        meshtf-plan search "$work/g.json" --mesh "$1" $2 --microbatches 4 --machine cpu-host -o "$work/p.json" >/dev/null
        return
        ;;
    esac
    meshtf-plan estimate "$work/g.json" --mesh "$1" --layout "$2" --machine cpu-host -o "$work/p.json" >/dev/null
}

meshtf-plan model transformer-lm --preset demo --layers 4 --vocab 437 --batch 4 --length 64 -o "$work/g.json" >/dev/null
plan 'rows:1' ''
prompt='The free software'
meshtf-run "$work/p.json" --data LICENSE --tokenizer $tokenizer --steps 0 --seed 5 --generate 20 --prompt "$prompt" \
    >"$work/generated"
sed '1,/^$/d' "$work/generated" | head -c -1 >"$work/said5"

while read -r ranks mesh layout; do
    plan "$mesh" "$layout"
    serve "$ranks" --slots 3
    ask "{\"prompt\": \"$prompt\", \"max_tokens\": 20, \"echo\": true}"
    claim "$ranks ranks answer" answers 200
    jq -j '.choices[0].text' "$work/out" >"$work/said"
    claim "  with what --generate says" cmp "$work/said" "$work/said5"
    claim "  and count tokens" has '.usage.completion_tokens == 20 and .choices[0].finish_reason == "length"'
    for i in 1 2 3 4 5 6 7; do
        curl -s "$url/v1/completions" -o "$work/many$i" \
            -d "{\"prompt\": [\"Copyleft, $i\", \"$prompt\"], \"max_tokens\": $((16 + i)), \"echo\": true, \"n\": 2}" &
        requests="${requests:-} $!"
    done
    # The numbers of processes are split into words on purpose.
    # shellcheck disable=SC2086
    wait $requests
    requests=
    jq -j '.choices[2].text' "$work/many4" >"$work/said"
    claim "  and when seven ask at once for four choices each, in three slots" cmp "$work/said" "$work/said5"
    claim "  all are answered" [ "$(jq -r '.choices | length' "$work"/many? | sort -u)" = 4 ]
    [ "$ranks" = 1 ] || { claim "  SIGUSR2 ends it" ends USR2 0; continue; }
    claim "  SIGTERM ends one rank with status 0" ends TERM 0
    claim "  which is said" grep -q "asked to end" "$work/log"
done <<TABLE
1 rows:1
2 rows:2 heads:rows;d_ff:rows;vocab:rows
4 rows:2;cols:2 batch:rows;d_model:cols
2 rows:1 --stages 2
4 rows:2 --stages 2 --schedule interleaved
TABLE

# What a request may ask for.
plan 'rows:2' 'batch:rows'
serve 2
greedy='"max_tokens": 12, "temperature": 0'
ask "{\"prompt\": \"$prompt\", $greedy, \"return_token_ids\": true}"
claim "tokens are given where asked for" has '.choices[0].token_ids | length == 12'
jq -j '.choices[0].text' "$work/out" >"$work/whole"
jq -c '.choices[0].token_ids' "$work/out" >"$work/tokens"
ask "{\"prompt\": \"$prompt\", $greedy, \"top_p\": 0.5, \"top_k\": 7, \"seed\": 99, \"return_token_ids\": true}"
claim "at temperature 0 seed, top_k and top_p do not matter" has ".choices[0].token_ids == $(cat "$work/tokens")"
ask "{\"prompt\": \"$prompt\", \"max_tokens\": 12, \"temperature\": 5, \"top_k\": 1, \"return_token_ids\": true}"
claim "top_k 1 is the highest at any temperature" has ".choices[0].token_ids == $(cat "$work/tokens")"
ask "{\"prompt\": \"$prompt\", $greedy, \"stream\": true}" -N
sed -n 's/^data: {/{/p' "$work/out" | jq -j '.choices[0].text' >"$work/pieces"
claim "the pieces of a stream are the whole" cmp "$work/whole" "$work/pieces"
claim "a stream ends with [DONE]" grep -q '^data: \[DONE\]' "$work/out"
ask "{\"prompt\": \"$prompt\", $greedy, \"logprobs\": 2}"
claim "the likeliest is what is said where nothing is drawn" \
    has '.choices[0].logprobs | [.token_logprobs, [.top_logprobs[] | [.[]] | max]] | .[0] == .[1] and (.[0] | length == 12 and max <= 0)'
claim "  and the tokens are the text" has '.choices[0] | (.logprobs.tokens | add) == .text'
cp "$work/out" "$work/scored"
ask "{\"prompt\": \"$prompt\", $greedy, \"logprobs\": 2, \"stream\": true}" -N
sed -n 's/^data: {/{/p' "$work/out" | jq -sc '[.[].choices[].logprobs.token_logprobs] | add' >"$work/pieces"
claim "  a stream tells them all once" [ "$(cat "$work/pieces")" = "$(jq -c '.choices[0].logprobs.token_logprobs' "$work/scored")" ]
# What was said is scored as part of a prompt as it was when it was said; of the first token nothing is known.
told=$(jq -c '[.choices[0].logprobs.token_logprobs[]]' "$work/scored")
ask "$(jq -cn --arg p "$prompt" --rawfile w "$work/whole" '{prompt: ($p + $w), max_tokens: 0, echo: true, logprobs: 2}')"
claim "a prompt is scored where it is echoed" has ".choices[0].logprobs.token_logprobs | .[0] == null and
    ([.[-12:], $told] | transpose | map(.[0] - .[1] | fabs) | max < 1e-3)"
claim "  each of its tokens, with the likeliest" has '.choices[0] | .finish_reason == "length" and (.logprobs.tokens | add) == .text and
    ([.logprobs.top_logprobs[1:][] | length] | min) == 2'
claim "  and nothing is said" has '.usage.completion_tokens == 0'
# Of several the likeliest is told, by the mean of its tokens.
asks='"temperature": 1, "seed": 3, "max_tokens": 6'
ask "{\"prompt\": \"$prompt\", $asks, \"n\": 5, \"logprobs\": 0}"
best=$(jq -c '[.choices | sort_by(-(.logprobs.token_logprobs | add / length))[:2][].text]' "$work/out")
ask "{\"prompt\": \"$prompt\", $asks, \"best_of\": 5, \"n\": 2}"
claim "the best of five are told" has "[.choices[].text] == $best and [.choices[].index] == [0, 1]"
claim "  without the scores that nobody asked for" has '[.choices[].logprobs] == [null, null]'
claim "  and all tokens are counted" has '.usage.completion_tokens == 30'
# A token that is wanted more than any other is all that is said, and one that was said is said no more.
ask "$(jq -cn --arg p "$prompt" '{prompt: $p, max_tokens: 5, temperature: 0, return_token_ids: true, logit_bias: {"65": 100}}')"
claim "a bias decides what is said" has '[.choices[0].token_ids[] == 65] | all'
ask "$(jq -cn --arg p "$prompt" '{prompt: $p, max_tokens: 5, temperature: 0, return_token_ids: true, logit_bias: {"65": 98, "66": 98},
    presence_penalty: 2, frequency_penalty: 2}')"
claim "penalties let tokens take turns" has '.choices[0].token_ids | unique | length > 1'
stop=$(jq -Rsr '.[6:8]' "$work/whole")
ask "$(jq -cn --arg p "$prompt" --arg s "$stop" '{prompt: $p, max_tokens: 12, temperature: 0, stop: $s}')"
claim "a text that was named ends it" has '.choices[0].finish_reason == "stop"'
claim "  and is not part of it" [ "$(jq -r --arg s "$stop" '.choices[0].text | contains($s)' "$work/out")" = false ]
ask '{"prompt": [17, 4, 200], "max_tokens": 3, "seed": 6}'
claim "a prompt of tokens is answered" has '.usage.prompt_tokens == 3'
curl -s "$url/v1/models" >"$work/out"
claim "the model is named" has '.data[0].id == "transformer-lm-demo"'
curl -s "$url/health" >"$work/out"
claim "it says that it is well" has '.status == "ok"'

# What is wrong with a request is said.
while IFS='|' read -r expected reason body; do
    ask "$body"
    claim "$reason: status $expected" answers "$expected"
    claim "  in that sentence" tells "$reason"
done <<'TABLE'
400|"prompt" is missing|{"max_tokens": 3}
400|/prompt: a text or a list of tokens|{"prompt": {"a": 1}}
400|/prompt/1|{"prompt": [1, "a"]}
400|token 437 is not one of the model's|{"prompt": [437]}
400|at least one token|{"prompt": ""}
400|beyond the model's context of 64|{"prompt": "a", "max_tokens": 64}
400|says nothing without "echo"|{"prompt": "a", "max_tokens": 0}
400|"best_of" must be at least "n"|{"prompt": "a", "best_of": 2, "n": 3}
400|leave out "stream" or "best_of"|{"prompt": "a", "best_of": 2, "stream": true}
400|/temperature|{"prompt": "a", "temperature": -1}
400|/top_p|{"prompt": "a", "top_p": 0}
400|/top_k|{"prompt": "a", "top_k": 1.5}
400|/n|{"prompt": "a", "n": 1000}
400|/stop|{"prompt": "a", "stop": ["", 3]}
400|/logit_bias: token 999999 is not one|{"prompt": "a", "logit_bias": {"999999": 1}}
400|/logprobs|{"prompt": "a", "logprobs": 21}
400|leave out "echo" or "logprobs"|{"prompt": "a", "logprobs": 1, "echo": true, "stream": true}
400|/frobnicate|{"prompt": "a", "frobnicate": 1}
400|the request|{"prompt": "a"
400|the request|not JSON
429|choices wait already|{"prompt": ["a","a","a","a","a"], "n": 64}
TABLE
ask '{"prompt": "a", "n": 1000}'
claim "the field that is wrong has a place of its own" has '.error.param == "n" and .error.type == "invalid_request_error"'
ask 'not JSON'
claim "  where there is one" has '.error | has("param") and .param == null'
head -c 1100000 /dev/zero | tr '\0' 'a' >"$work/large"
http=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/completions" --data-binary @"$work/large")
claim "a body of over a megabyte is too large" answers 413
http=$(curl -s -o "$work/out" -w '%{http_code}' -H 'Transfer-Encoding: chunked' "$url/v1/completions" --data-binary @"$work/large")
claim "  in chunks as well" answers 413
http=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/completions")
claim "GET is not for completions" answers 405
http=$(curl -s -o "$work/out" -w '%{http_code}' -H "X: $(head -c 17000 /dev/zero | tr '\0' a)" "$url/health")
claim "headers of over 16 KiB are too large" answers 431
claim "  which is said in JSON" tells "larger than 16384 bytes"
http=$(curl -s -o "$work/out" -w '%{http_code} %{content_type}' "$url/")
claim "there is a page for trying a prompt" answers "200 text/html; charset=utf-8"
claim "  that asks for completions" grep -q "fetch('/v1/completions'" "$work/out"
http=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/chat")
claim "other pages are not there" answers 404
claim "  which is said in JSON" has '.error.code == 404'
curl -s -o "$work/out" "gopher://${url#http://}/1what"
claim "what is no HTTP is refused" grep -q '^HTTP/1.1 400 Bad Request' "$work/out"
sed -i '1,/^\r$/d' "$work/out"
claim "  in JSON" has '.error.code == 400 and .error.type == "invalid_request_error"'
curl -s -o "$work/out" -o "$work/out2" -w '%{num_connects} ' "$url/health" "$url/v1/models" >"$work/connects"
claim "a second page comes by the same connection" grep -q '^1 0 ' "$work/connects"
ask '{"prompt": "a", "max_tokens": 60, "n": 8}' --max-time 0.02
ask "{\"prompt\": \"$prompt\", $greedy}"
jq -j '.choices[0].text' "$work/out" >"$work/said"
claim "a client that went away does not hold up others" cmp "$work/said" "$work/whole"
chat() { # BODY [OPTION…]
    body=$1
    shift
    http=$(curl -s -o "$work/out" -w '%{http_code}' "$url/v1/chat/completions" -d "$body" "$@")
}
chat '{"messages": [{"role": "user", "content": "a"}]}'
claim "without a template there are no conversations" answers 400
claim "  which is said" tells "no template says how this model's conversations are spelled"
port=${url##*:}
run meshtf-run "$work/p.json" --serve "$port" --dry-run
run mpirun -n 2 meshtf-run "$work/p.json" --data LICENSE --tokenizer $tokenizer --serve "$port"
claim "a port in use is bad input" exits 2
claim "  and named" says_error "--serve $port"
kill -TERM "$server"
wait "$server"

# Conversations, spelled by the folder's template, are answered as their spelling is gone on with.
mkdir "$work/model"
cp $tokenizer "$work/model/tokenizer.json"
cat >"$work/model/chat_template.jinja" <<'TEMPLATE'
{%- for m in messages %}
{%- if m.role not in ['user', 'assistant'] %}{{ raise_exception('the role ' + m.role) }}{% endif %}
{{- bos_token + m.role + ': ' + m.content | trim + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'assistant:' + (mood or '') }}{% endif %}
TEMPLATE
echo '{"bos_token": "*"}' >"$work/model/tokenizer_config.json"
tokenizer=$work/model
plan 'rows:1' ''
serve 1
talk='"messages": [{"role": "user", "content": " Is it free? "}, {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "Why"}]'
ask "{\"prompt\": \"*user: Is it free?\\n*assistant: Yes\\n*user: Why\\nassistant:\", $greedy}"
cp "$work/out" "$work/spelled"
said=$(jq -c '.choices[0].text' "$work/spelled") counts=$(jq -c .usage "$work/spelled")
chat "{$talk, $greedy}"
claim "a conversation is answered" answers 200
claim "  with what goes on behind its spelling" has ".choices[0].message == {\"role\": \"assistant\", \"content\": $said}"
claim "  and counted alike" has ".usage == $counts and .object == \"chat.completion\""
chat "{$talk, $greedy, \"stream\": true, \"stream_options\": {\"include_usage\": true}}" -N
sed -n 's/^data: {/{/p' "$work/out" | jq -s . >"$work/pieces"
mv "$work/pieces" "$work/out"
claim "the pieces of a streamed one are the whole" has "[.[].choices[]?.delta.content // \"\"] | add == $said"
claim "  the first says whose they are" has '.[0].choices[0].delta.role == "assistant" and .[0].object == "chat.completion.chunk"'
claim "  the last counts, as it was asked to" has ".[-1].usage == $counts and .[-1].choices == []"
chat "{$talk, \"temperature\": 0, \"chat_template_kwargs\": {\"mood\": \" Well\"}}"
claim "a template is told what else it is to know, and without a limit the answer fills the context" \
    has '.usage.total_tokens == 64 and .choices[0].finish_reason == "length"'
chat "{$talk, $greedy, \"logprobs\": true, \"top_logprobs\": 1}"
claim "a conversation's tokens are scored where asked for" \
    has "[.choices[0].logprobs.content[] | .token == .top_logprobs[0].token] | length == 12 and all"
chat '{"messages": [{"role": "tool", "content": "a"}]}'
claim "what a template refuses is a bad request" answers 400
claim "  in its words" tells "chat_template.jinja: line 2: the role tool"
chat '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}'
claim "pictures are not read" tells '/messages/0/content/0/type: only parts of type "text"'
claim "SIGTERM ends it" ends TERM 0
echo '{% macro f() %}{% endmacro %}' >"$work/model/chat_template.jinja"
serve 1
claim "a template that cannot be read is told" grep -q 'no conversations: .*line 1: the statement "macro"' "$work/log"
chat "{$talk}"
claim "  and to who asks for a conversation" tells 'line 1: the statement "macro" is not supported'
ask "{\"prompt\": \"$prompt\", $greedy}"
claim "  texts are gone on with all the same" answers 200
kill -TERM "$server"
wait "$server"

run meshtf-run "$work/p.json" --serve 70000
claim "70000 is no port" bad_input
run meshtf-run "$work/p.json" --serve --slots 0
claim "a slot at least is needed" bad_input
meshtf-plan model mlp -o "$work/g.json" >/dev/null
plan 'rows:1' ''
run meshtf-run "$work/p.json" --serve 0
claim "a model that says nothing is not served" exits 2
done_testing
