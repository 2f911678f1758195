package main

import "runtime/debug"

// version is the version of this program, with the commit from which it was built if that is known.
func version(about *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	text, set := about.Main.Version, map[string]string{}
	for _, s := range about.Settings {
		set[s.Key] = s.Value
	}
	if text == "" {
		text = "(devel)"
	}
	if commit := set["vcs.revision"]; commit != "" {
		text += ", commit " + commit
		if set["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	return text + ", " + about.GoVersion
}
