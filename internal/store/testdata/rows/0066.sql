UPDATE runs SET crashes = 1;
