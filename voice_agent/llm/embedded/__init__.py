"""The language model that needs no key and no network.

It decides; it does not write. Among what the framework allows it chooses a skill or tool by
sentence similarity to descriptions and examples, fills typed fields and tool arguments from the
caller's words (numbers, digits, money, dates, times, yes and no, choices, names), answers from
reference texts by giving back their own sentences, and says plainly when it cannot help.

Limits, so that nobody expects more:

* It composes no new prose. What it says is a fixed line, a question made from a field's
  description, a sentence out of a reference text, or the plain reading of a tool's result.
* It reads descriptions, not instructions: the prose of a skill, rules and persona have no effect.
  Put what must happen into ordered blocks, conditions and tools.
* It does not reason over several steps. One utterance leads to one skill, one tool, or one answer;
  "do this, and if that fails do the other" is beyond it.
* English only. Dates written in figures are read month first.
* Sentence similarity is a blunt measure: it knows topics, not negation. "I do not want to cancel"
  lies near "cancel my contract". Confirmation by the framework is the remedy for what matters.

What helps it, beside examples under each skill:

* A description that ends with a question mark is the question: ``description: How many people are there?``.
* ``Six-digit account number`` says how long a number is: parts of it are put together, and a phone number
  is not taken for it.
* ``internet (wifi, connection) or phone (line, dial tone)`` names what else callers say for a choice.
* Names tell what a text holds: ``visit_date``, ``callback_number``, ``amount`` (kept as "20.00"), ``customer_name``.
* A reference text answers best with sentences that stand for themselves and use callers' words.

The steps are pure and run on one worker thread: `policy` (what to do), `answering` (a caller who was
asked something), `choice` (which skill or tool), `fields` (typed values, over `numbers`,
`counted_digits` and `dates`), `yes_no`, `small_talk`, `answers` and `readings` (what to say). `minilm`
is the sentence encoder, `model` the shell around it all.
"""
