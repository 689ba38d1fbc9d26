"""Base classes of the console's pages. ``flagadmin/core/lists/pages.py`` explains how to write a page."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.generic.base import ContextMixin, TemplateResponseMixin, View
from django.views.generic.edit import FormMixin
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.override import ask_what_to_do, changing_as_asked
from flagadmin.core.edit_conflicts.forms import EditConflictMixin, describe_differences
from flagadmin.core.errors import (
    AppError,
    AuthenticationRequired,
    MethodNotAllowed,
    NoAccess,
    NotFound,
    Problem,
    ValidationError,
)
from flagadmin.core.lists.columns import Column as Column
from flagadmin.core.lists.pages import Filter as Filter
from flagadmin.core.lists.pages import Listing as Listing
from flagadmin.core.lists.pages import add_problems, curl_for, make_csv_response
from flagadmin.core.lists.tables import ListMixin
from flagadmin.core.unreadable_values import FIELD
from groups.access import Caller
from groups.authentication import get_caller
from groups.login.flow import RESTORE, SESSION_ENDED, ask_to_log_in, take_input
from groups.permissions import Permission

# The parent pages of a page, outermost first: (label, URL).
Breadcrumbs = Sequence[tuple[str, str | Promise]]


@method_decorator([gzip_page, never_cache], name="dispatch")
class ConsolePage(TemplateResponseMixin, ContextMixin, View):
    """A page that requires login. Other visitors are redirected to /login/ and back afterwards.

    ``title`` and ``api_call`` may name parameters of its URL and its attributes: "Edit {name}", "GET {page.api}/{id}".
    """

    title = ""
    parents: Breadcrumbs = ()
    api_call = ""  # the API call that is equivalent to the page
    api_example: Any = None  # its body
    restores = False  # whether a POST with do=RESTORE only renders the form with the submitted values
    caller: Caller
    unreadable: Sequence[Problem] = ()  # values that SDKs cannot read: the form asks whether to keep them

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            self.caller = get_caller(request)
        except AuthenticationRequired:
            return send_to_login(request)
        if self.restores and (entered := take_input(request)) is not None:
            _ = request.FILES  # parses the body now; parsing it later would overwrite request.POST
            request.method, request.POST = "POST", entered  # type: ignore[assignment]
        check_form_text(request)
        try:
            self.unreadable, keeps = [], FIELD in request.POST
            with changing_as_asked(request, self.caller, keeps_unreadable=keeps, unreadable=self.unreadable):
                return super().dispatch(request, *args, **kwargs)
        except Refusal as error:
            return ask_what_to_do(request, error, self.caller)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        raise not_allowed([name.upper() for name in self.http_method_names if hasattr(self, name)])

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        return self.render_to_response(self.get_context_data(**kwargs))

    def head(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Otherwise Django would set it to the bound method `get`: a reference cycle in every request.
        return self.get(request, *args, **kwargs)

    def find(self) -> None:
        """Loads the page's object. Raises NotFound, NoAccess."""

    def done(self, sentence: str, url: str) -> str:
        """Shows what was done as a message on the page of this URL, and returns the URL."""
        messages.success(self.request, sentence)
        return url

    def get_title(self) -> str:
        return self.title.format(page=self, **self.kwargs)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return self.parents

    def get_api_body(self) -> Any:
        return self.api_example

    def get_curl(self) -> str:
        """A curl command for the equivalent API call, "" if there is none."""
        if not self.api_call:
            return ""
        method, path = self.api_call.split()
        parameters = {name: quote(str(value), "") for name, value in self.kwargs.items()}
        return curl_for(self.request, method, path.format(page=self, **parameters), self.get_api_body())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **{
                "title": self.get_title(),
                "breadcrumbs": self.get_breadcrumbs(),
                "curl": self.get_curl(),
                "caller": self.caller,
                "unreadable": self.unreadable,
                **kwargs,
            }
        )


def not_allowed(methods: Sequence[str]) -> MethodNotAllowed:
    """Usually, a user reloaded the URL of a form; the error page has links to other pages."""
    return MethodNotAllowed("This URL only accepts form submissions.", headers={"Allow": ", ".join(methods)})


class ListPage(ListMixin, ConsolePage):
    """A table with filters, sorting, pagination and CSV download, all controlled by the URL."""

    template_name = "console/list.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        listing = self.get_listing()
        if request.GET.get("format") == "csv":
            header = [column.label for column in listing.columns if column.key]
            name = self.csv_name.format(**self.kwargs) or slugify(self.get_title())
            return make_csv_response(request, name, header, self.get_csv_lines(listing.all_rows))
        return self.render_to_response(self.get_context_data(listing=listing, **kwargs))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if listing := kwargs.get("listing"):
            kwargs = {"rows": SimpleLazyObject(lambda: list(self.complete(list(listing.rows)))), **kwargs}
        return super().get_context_data(**{"may_create": self.may_create(), **kwargs})


class FormPage(FormMixin, ConsolePage):
    """A page with a form. Errors raised by the action are shown beside the fields."""

    permission: Permission | None = None  # required to submit the form, if no project is involved
    button = ""  # its label, with verb and object
    restores = True
    problem_fields: Mapping[str, str] = {}  # form fields by the paths in the action's errors, if they differ

    def find(self) -> None:
        """Loads the edited object. Raises NotFound, or NoAccess for a caller who may not submit the form."""
        if self.permission is not None:
            self.caller.check(self.permission)

    def prepare(self) -> None:
        self.find()

    def get_form(self, form_class: type[BaseForm] | None = None) -> BaseForm:
        return drop_maxlength(super().get_form(form_class))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return add_button(context, self.button) if self.button else context

    def submit(self, form: Any) -> str:
        """Calls the action with the form's values. Returns the URL to redirect to."""
        raise NotImplementedError

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.prepare()
        return self.render_to_response(self.get_context_data(form=self.get_form(), **kwargs))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.prepare()
        form = self.get_form()
        status = 400
        if request.POST.get("do") == RESTORE:
            status = 200
        elif form.is_valid():
            try:
                return HttpResponseRedirect(self.submit(form))
            except NotFound:
                raise
            except AppError as error:
                self.show_refusal(error, form)
                status = error.status
        return self.render_to_response(self.get_context_data(form=form, **kwargs), status=status)

    def show_refusal(self, error: AppError, form: BaseForm) -> None:
        """Shows the action's error in the form."""
        add_problems(form, error, fields=self.problem_fields)


class EditPage(EditConflictMixin, FormPage):
    """A form that changes a stored object. ``submit`` passes ``version.expected`` to the action."""

    entered: BaseForm | None = None  # the rejected form after an edit conflict

    def prepare(self) -> None:
        super().prepare()
        self.note_version()

    def get_form_kwargs(self) -> dict[str, Any]:
        """Drops the submitted values after a conflict, so that the form shows the stored ones."""
        kwargs = super().get_form_kwargs()
        return kwargs | {"data": None, "files": None} if self.entered else kwargs

    def show_refusal(self, error: AppError, form: BaseForm) -> None:
        super().show_refusal(error, form)
        self.entered = form
        self.show_conflict(error)

    def sentences_now(self) -> list[str]:
        assert self.entered is not None
        self.find()
        return describe_differences(self.get_form(), self.entered)


def drop_maxlength(form: BaseForm) -> BaseForm:
    """Removes ``maxlength``: browsers silently truncate pasted text, but the form reports an error."""
    for field in form.fields.values():
        field.widget.attrs.pop("maxlength", None)
    return form


def check_form_text(request: HttpRequest) -> None:
    """Raises ValidationError for a NUL character, which PostgreSQL cannot store and browsers do not send."""
    for name, values in request.POST.lists():
        if any("\0" in text for text in (name, *values)):
            raise ValidationError("The form must not contain a NUL character.")


class ActionPage(ConsolePage):
    """A button that calls an action and redirects. The action's message appears on the page it redirects to.

    The form field ``next`` names that page, which must belong to this installation.
    """

    http_method_names = ["post"]
    success_url: str | Promise

    def act(self) -> str:
        """Calls the action. Returns a sentence about the result."""
        raise NotImplementedError

    def get_success_url(self) -> str:
        """The URL to redirect to if the form names no page."""
        return str(self.success_url)

    def get_redirect_url(self) -> str:
        return read_next_page(self.request) or self.get_success_url()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        by_script = "HX-Request" in request.headers
        try:
            done = self.act()
        except AppError as error:
            if isinstance(error, NoAccess | NotFound) and not by_script:
                raise
            messages.error(request, error.message)
            go = HttpResponseClientRedirect if by_script else HttpResponseRedirect
            return go(self.get_redirect_url())
        self.tell(done)
        return HttpResponseRedirect(self.get_redirect_url())

    def tell(self, done: str) -> None:
        """Adds the message, except for htmx, which replaces only the changed part of the page."""
        if "HX-Request" not in self.request.headers:
            messages.success(self.request, done)


class SubmitPage(ConsolePage):
    """A page whose own form is posted to it. It shows errors of the action as `refusal`."""

    passes: tuple[type[AppError], ...] = (NoAccess, NotFound)  # errors that get the error page instead

    def submit(self) -> str:
        """Calls the action. Returns the URL to redirect to."""
        raise NotImplementedError

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        return self.try_to_submit()

    def ask_first(self) -> HttpResponseBase | None:
        """The answer that asks for confirmation, if necessary. Raises the errors that submitting would raise."""
        return None

    def try_to_submit(self) -> HttpResponseBase:
        try:
            return self.ask_first() or HttpResponseRedirect(self.submit())
        except self.passes:
            raise
        except AppError as error:
            return self.refuse(error)

    def refuse(self, error: AppError) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(refusal=error), status=error.status)


class ConfirmPage(SubmitPage):
    """Asks for confirmation of a destructive action: GET shows the consequences, POST performs the action."""

    template_name = "console/confirm.html"
    asks_why = False  # whether users of applications, or the author of a request, may notice the action

    def plan(self) -> dict[str, Any]:
        """The template variables. Raises NoAccess, NotFound.

        ``lead``: the introduction. ``removed_items``: one line for each consequence. ``button`` and ``cancel``: see
        ``add_button``. ``blocked``: the reason, if the action is currently impossible. ``hidden``: (name, value) pairs
        to submit.
        """
        raise NotImplementedError

    def act(self) -> tuple[str, str]:
        """Performs the action. Returns a sentence about the result, and the URL to redirect to."""
        raise NotImplementedError

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return add_button(super().get_context_data(**{"asks_why": self.asks_why, **kwargs}))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(**self.plan()))

    def refuse(self, error: AppError) -> HttpResponseBase:
        context = self.get_context_data(refusal=error, **self.plan())
        return self.render_to_response(context, status=error.status)

    def submit(self) -> str:
        return self.done(*self.act())


def add_button(context: dict[str, Any], label: str = "") -> dict[str, Any]:
    """Adds the button, labelled like the page by default, and a link back to the page above, unless they are given."""
    above = context["breadcrumbs"][-1:]
    return {"button": label or context["title"], "cancel": above[0][1] if above else ""} | context


def read_next_page(request: HttpRequest) -> str:
    """The path in ``next``, of the form or the URL; "" if it is absent or points to another site."""
    url = request.POST.get("next", "") or request.GET.get("next", "")
    fits = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if fits else ""


def send_to_login(request: HttpRequest) -> HttpResponseBase:
    """Redirects to /login/ and back. Keeps the submitted values of a form.

    An htmx request for a part of a page redirects the whole page. For a form submitted by htmx, it raises
    AuthenticationRequired instead: the values stay in the browser.
    """
    by_script = "HX-Request" in request.headers
    if request.method == "POST" and by_script:
        raise AuthenticationRequired(SESSION_ENDED)
    if request.method == "POST":
        return ask_to_log_in(request)
    if not by_script:
        return redirect_to_login(request.get_full_path())
    return HttpResponseClientRedirect(redirect_to_login(read_current_page(request)).url)


def read_current_page(request: HttpRequest) -> str:
    """The path of the page that sent the htmx request, from its header; "/" if it is invalid."""
    try:
        page = urlsplit(request.headers.get("HX-Current-URL", "/"))
    except ValueError:
        return "/"
    return urlunsplit(("", "", *page[2:4], ""))
