SELECT src FROM measurements m WHERE loss > 1
