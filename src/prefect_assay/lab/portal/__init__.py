"""The web portal of the lab (docs/portal.md): pages for people, behind the links of the API.

Routes read the lab and hand plain records to templates. The API must not know the portal.
"""
