startPage("live");
