"""Questions and answers as bags of words, two towers, one loss: each question finds its own answer among all.

python examples/text.py
"""

import torch

from lookalike import Pairs, evaluate, losses

TOPICS = ["bread oven flour yeast", "sail wind boat harbour", "piano chord concert scale", "goal ball pitch referee"]
ASKED = ["how do i use", "what is the best", "why is there no", "where can i find"]
TOLD = ["it depends on", "people recommend", "most shops sell", "read about"]

words = {word: place for place, word in enumerate(sorted({w for t in (*TOPICS, *ASKED, *TOLD) for w in t.split()}))}


def bag(sentence: str) -> torch.Tensor:
    counts = torch.zeros(len(words))
    counts[[words[word] for word in sentence.split()]] = 1
    return counts


# each item has its own pair of words of a topic; question and answer share nothing else
items = [(first, second) for topic in TOPICS for first in topic.split() for second in topic.split() if first < second]
questions = torch.stack([bag(f"{ASKED[n % 4]} {a} {b}") for n, (a, b) in enumerate(items)])
answers = torch.stack([bag(f"{TOLD[n % 3]} {a} {b}") for n, (a, b) in enumerate(items)])
ids = torch.arange(len(items))

torch.manual_seed(0)
asks, tells = (torch.nn.Linear(len(words), 32, bias=False) for _ in range(2))
loss = losses.SigLIP()
optimiser = torch.optim.Adam([*asks.parameters(), *tells.parameters(), *loss.parameters()], lr=1e-2)
for _ in range(150):
    value = loss(asks(questions), Pairs.across(ids, ids), candidates=tells(answers))
    optimiser.zero_grad()
    value.backward()
    optimiser.step()

with torch.no_grad():
    result = evaluate(asks(questions), ids, gallery=tells(answers), gallery_labels=ids, metrics=["recall@1", "mrr"])
print(f"{len(items)} questions, recall@1 {result['recall@1']:.2f}, mean reciprocal rank {result['mrr']:.2f}")
