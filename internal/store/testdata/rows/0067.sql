UPDATE blobs SET rejected_mark = 'm2';
