SELECT *, a.*, b.src AS other FROM m[j] a JOIN m[j-1] b ON a.src = b.src
