UPDATE workflows SET license = 'MIT';
