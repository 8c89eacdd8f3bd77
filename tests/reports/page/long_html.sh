# SPDX-License-Identifier: GPL-3.0-or-later
# Pages judged by the checker that the W3C runs, which npm has as vnu-jar and which needs Java.
. tests/support/tap.sh

tools=$top/build/npm
jar=$tools/node_modules/vnu-jar/build/dist/vnu.jar
if [ ! -e "$jar" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$tools" vnu-jar >/dev/null 2>&1
fi
if [ ! -e "$jar" ] || ! command -v java >/dev/null; then
    skip "java or npm is not installed, or npm has no network"
    done_testing
fi
sh tests/support/make_pages.sh "$work/pages"
for name in mlp demo size5 gpt hostile compare; do
    # The slashes are there for readers of XML.
    run java -jar "$jar" --filterpattern '.*Trailing slash.*' "$work/pages/$name/index.html"
    claim "the page of $name is valid" exits 0
    claim "and gives no warning" is_silent
done
sed 's/<h1>/<h1><p>/' "$work/pages/mlp/index.html" >"$work/wrong.html"
run java -jar "$jar" "$work/wrong.html"
claim "a wrong page is found wrong" exits 1
done_testing
