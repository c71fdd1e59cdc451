UPDATE output_copies SET upload = 'u1', upload_of = 'results/big';
