"""Episodes: few-shot tasks, each with a few examples to learn from and some to judge.

`contract` says what an episode is and how it is made again; `images` and `sines` make
them; `class_splits` divides classes so that no episode to test has one seen before;
`protocols` names the settings of publications.
"""
