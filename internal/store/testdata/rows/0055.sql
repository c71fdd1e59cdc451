SELECT 1; -- the index is filled by the program
