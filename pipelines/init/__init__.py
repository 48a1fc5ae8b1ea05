"""`shardwright init`: from a folder to a configuration with everything spelled out, or a question.

In this order; `decide.detect_input` calls the first seven.

1. `inventory`: the files of the folder, listed once.
2. `hypotheses`: which of them may be the images, and which the annotations.
3. `compare`: each hypothesis is read (`read_trial`) and scored; the one that is ahead, or a question.
4. `class_tree`, `other_files`: without annotations, what folders and texts may say.
5. `scope`: the images that it does not explain are left out with a reason, or a question.
6. `image_sample`: some images are tried as an ingest reads them.
7. `choose_split`: the splits that the input states; else shares with every class.
8. `question`: each answer is tried, with its counts; `show` draws images under each.
9. `spell_out`: the configuration as YAML with comments. `write_project` writes a TFX project instead.
"""
