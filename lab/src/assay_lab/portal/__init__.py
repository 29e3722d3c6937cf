"""The web portal of the lab (lab/docs/lab.md): pages for people, behind the links of the API, which does not know it."""
