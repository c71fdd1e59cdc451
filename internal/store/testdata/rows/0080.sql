UPDATE large_uploads SET manifest = 1;
