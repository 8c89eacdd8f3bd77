// Encodings of Hugging Face's own library (npm: @anush008/tokenizers) for the tokenizers of a folder:
//   node make_encodings.js FOLDER > FOLDER/encodings.json
const { Tokenizer } = require('@anush008/tokenizers');
const folder = process.argv[2];
const texts = ['', ' ', 'a', 'Hello world', ' Hello  world ', "don't we'll IT'S they've", 'free software', 'The GNU General Public License', '12345 and 67', 'x=1;y=2', 'naïve café Zürich', 'e\u0301te\u0301', '日本語 中文', 'Привет, мир!', '😀 smile 😀😀', 'tabs\tand\nnew\r\nlines\n\n  end', 'a...b!!! ???', 'ﬁ ½ ①  Å', '<|endoftext|>x<|endoftext|>', 'a <s> b</s>c', 'hi<|begin_of_text|> there<|eot_id|>', '[CLS] word [SEP]', 'one <extra_id_0>  two', 'software software software softwaresoftware', 'UPPER lower MiXeD', '\u200bzero\u00a0nbsp', 'snake_case under_score', '$100 & 50%', 'zzzzqqqqxxxx', 'distribute and/or modify it under the terms', '   leading', 'trailing   ', 'ÀÉÎ õü ß', 'ひらがなカタカナ', '한국어 문장', 'עברית', 'العربية', 'co-operate (see below): "quoted" \'single\'', 'http://www.gnu.org/licenses/', '\u2581mark\u2581', 'a\u0000b'.replace('\u0000','')];
(async () => {
  const rows = [];
  for (const name of ['gpt2', 'llama3', 'llama2', 'bert', 't5']) {
    const t = Tokenizer.fromFile(`${folder}/${name}.json`);
    for (const text of texts) {
      const special = (await t.encode(text, null, { addSpecialTokens: true })).getIds();
      const ids = Array.from(special);
      rows.push(JSON.stringify({ tokenizer: name, text, ids, decoded: await t.decode(ids, true) }));
    }
  }
  console.log('[\n' + rows.join(',\n') + '\n]');
})();
