"""What is wrong with a set of images: broken files, duplicates, suspicious labels."""
