"""Every page of the console, checked in both themes by ``test_every_page.py``. A new page gets a line here."""

ADA = "environment=production&context.userId=42&context.plan=pro&context.appVersion=4.5.1&context.country=NO"

PAGES = [
    "/",
    "/activity/",
    "/activity/?kind=flags&sort=when",
    "/account/",
    "/account/password/",
    "/account/tokens/new/",
    "/nowhere/",
    "/playground/",
    f"/playground/?{ADA}",
    f"/playground/?{ADA}&environment=development",
    f"/playground/?{ADA}&as=json",
    "/playground/?context.currentTime=tomorrow",
    f"/playground/flag/dark-theme/?{ADA}",
    f"/playground/flag/search-v2/?{ADA}",
    "/playground/compare/",
    "/projects/",
    "/projects/new/",
    "/projects/checkout/",
    "/projects/legacy-portal/?show=archived",
    "/projects/checkout/features/archive?name=checkout-redesign",
    "/admin/",
    "/api/docs/",
    "/projects/checkout/features/new",
    "/projects/checkout/features/checkout-redesign/",
    "/projects/checkout/features/dark-theme/edit",
    "/projects/legacy-portal/features/portal-login/",
]
