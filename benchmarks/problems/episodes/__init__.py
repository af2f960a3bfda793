"""Episodes: few-shot tasks, each with a few examples to learn from and some to judge.

`contract` says what an episode is and how it is made again; `images` and `sines` make
them; `class_splits` divides classes so that no episode to test has one seen before;
`protocols` names the settings of publications.

    source = ImageEpisodes(episodes_of("omniglot-small", ways=20, shots=1), replicate=0)
    batch = source.batch("train", range(4))  # always the same four episodes
    for batch in source.tests(at_once=50):  # 600 episodes of classes not seen before
        ...
"""
